/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_lock.c - two locks.
 *
 * Easy to get wrong: a process loses its record locks of a file when it closes
 * any descriptor of it. So the file is opened only when no other job of this
 * process can have it locked. */
#include "state/snapshot_lock.h"

#include "base/disk.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE = 100,      /* ms between two tries to take the lock */
    TELL_AFTER = 2000 /* ms until the log says for whom it waits */
};

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whether this process has opened the same folder by another descriptor. */
static bool is_open_twice(int folder)
{
    struct stat own, other;
    bool is = false;
    if (fstat(folder, &own))
        return false;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *e; all && !is && (e = readdir(all));) {
        const int fd = atoi(e->d_name);
        is = isdigit((unsigned char)*e->d_name) && fd != folder &&
             !fstat(fd, &other) && other.st_ino == own.st_ino &&
             other.st_dev == own.st_dev;
    }
    if (all)
        closedir(all);
    return is;
}

/* Take the record lock. 0: it is taken, or cannot be; else the process that has
 * it. */
static int try_file(fl_snapshot_lock *l, const char *path)
{
    struct flock own = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, other = own;
    l->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (l->file < 0 || !fcntl(l->file, F_SETLK, &own) ||
        (errno != EAGAIN && errno != EACCES) ||
        fcntl(l->file, F_GETLK, &other) || other.l_type == F_UNLCK)
        return 0;
    close_one(&l->file);
    return (int)other.l_pid;
}

/* Take both locks. 0: they are taken, or cannot be; else the process that has
 * one. The lock of a folder that no other job of this process has is that of
 * another process, or of a child of one: the record lock decides then. */
static int try_both(fl_snapshot_lock *l, const char *path)
{
    if (l->folder >= 0 && flock(l->folder, LOCK_EX | LOCK_NB) &&
        errno == EWOULDBLOCK && is_open_twice(l->folder))
        return (int)getpid();
    return try_file(l, path);
}

/* Until the lock is taken, or the time is over: then the process that has it.
 */
static int wait_for_lock(fl_snapshot_lock *l, const char *base,
                         const char *path, int ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE * 1000000};
    int pid;
    for (int waited = 0; (pid = try_both(l, path)); waited += PAUSE) {
        if (waited == TELL_AFTER)
            FL_WARN("process %d writes snapshots into %s; waiting for its end, "
                    "up to %d s",
                    pid, base, ms / 1000);
        if (waited >= ms)
            break;
        nanosleep(&pause, NULL);
    }
    return pid;
}

fl_err fl_snapshot_lock_init(fl_snapshot_lock *l, const char *base, int ms)
{
    const fl_disk *disk = fl_disk_real();
    char *path = fl_path_join(base, "lock");
    *l = (fl_snapshot_lock){-1, -1};
    int pid = 0;
    if (!disk->mkdirs(disk, base)) {
        l->folder = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        pid = wait_for_lock(l, base, path, ms);
    }
    fl_mem_free(path);
    if (!pid)
        return FL_OK;
    fl_snapshot_lock_fini(l);
    return fl_fail(FL_ETIMEOUT,
                   "FLUID_SNAPSHOT_DIR is %s, where process %d writes the "
                   "snapshots of another job; end that job, or name another "
                   "directory",
                   base, pid);
}

void fl_snapshot_lock_fini(fl_snapshot_lock *l)
{
    close_one(&l->file);
    close_one(&l->folder);
}
