/* SPDX-License-Identifier: Apache-2.0 */
/* disk.c - the real disk.
 *
 * A file is written under a temporary name and renamed, so that nobody reads
 * half of it. A path that is not a regular file (/dev/null, a pipe) is written
 * directly, because a rename would replace the device. */
#include "base/disk.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Make the error message for errno. errno is not changed. */
static fl_err fail_errno(const char *path, const char *what)
{
    int e = errno;
    fl_err code = e == ENOENT ? FL_ENOENT : e == ENOMEM ? FL_ENOMEM : FL_EIO;
    (void)!fl_fail(code, "%s: cannot %s: %s", path, what, strerror(e));
    errno = e;
    return code;
}

static fl_err disk_size(const fl_disk *d, const char *path, int64_t *bytes)
{
    struct stat st;
    if (stat(path, &st))
        return fail_errno(path, "look at it");
    *bytes = st.st_size;
    return FL_OK;
}

/* Reserve `cap` bytes and one for a NUL. */
static fl_err reserve_text(fl_str *s, const char *path, size_t cap)
{
    char *at = fl_mem_try(cap + 1);
    if (!at)
        return fl_fail(FL_ENOMEM, "%s: no memory for %zu bytes", path, cap);
    if (s->n)
        memcpy(at, s->at, s->n);
    fl_mem_free(s->at);
    s->at = at;
    s->cap = cap + 1;
    return FL_OK;
}

static fl_err too_large(const char *path, size_t n, size_t limit)
{
    return fl_fail(FL_EINVAL, "%s: %zu bytes, the limit is %zu", path, n,
                   limit);
}

/* Read to the end of the file, which may have grown since its size was read. */
static fl_err read_all(int fd, const char *path, size_t limit, fl_str *s)
{
    for (;;) {
        if (s->n > limit)
            return too_large(path, s->n, limit);
        if (s->n + 1 >= s->cap)
            FL_TRY(reserve_text(s, path, s->n < 4096 ? 8192 : 2 * s->n));
        ssize_t got = read(fd, s->at + s->n, s->cap - 1 - s->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(path, "read it");
        if (!got)
            return FL_OK;
        s->n += (size_t)got;
    }
}

static fl_err read_open(int fd, const char *path, size_t limit, fl_str *s)
{
    struct stat st;
    if (fstat(fd, &st))
        return fail_errno(path, "look at it");
    size_t size = (size_t)st.st_size;
    if (S_ISREG(st.st_mode) && size > limit)
        return too_large(path, size, limit);
    if (S_ISREG(st.st_mode)) /* one byte more, so that the read that fills it
                                also sees the end */
        FL_TRY(reserve_text(s, path, size + 1));
    return read_all(fd, path, limit, s);
}

static fl_err disk_read(const fl_disk *d, const char *path, size_t limit,
                        fl_str *out)
{
    fl_str s = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(path, "open it");
    fl_err err = read_open(fd, path, limit, &s);
    close(fd);
    if (err) {
        fl_str_fini(&s);
        return err;
    }
    s.at[s.n] = 0;
    fl_str_fini(out);
    *out = s;
    return FL_OK;
}

static bool write_all(int fd, const char *at, size_t n)
{
    while (n) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            at += put;
            n -= (size_t)put;
        }
    }
    return true;
}

/* Sync by fsync or syncfs. Some file systems cannot sync a directory and return
 * EINVAL, which is ignored. */
static bool sync_path(const char *path, int (*sync)(int fd))
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && (!sync(fd) || errno == EINVAL);
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return ok;
}

/* Sync the directory of a path: a rename survives a loss of power only then. */
static bool sync_parent(const char *path)
{
    char *dir = fl_path_parent(path);
    bool ok = sync_path(dir, fsync);
    fl_mem_free(dir);
    return ok;
}

/* Whether the open file is still the one at its path. */
static bool is_at(int fd, const char *path)
{
    struct stat held, named;
    return !fstat(fd, &held) && !stat(path, &named) &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* Empty a file that was there before, if this user owns it. In a folder that
 * all users can write, another user may have created it. */
static bool empty_own(int fd)
{
    struct stat st;
    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           st.st_uid == geteuid() && !ftruncate(fd, 0);
}

/* Open a new temporary file, or reuse one that a killed writer has left. The
 * file is locked while it is written. EEXIST: another process uses it, or
 * another user owns it. */
static int take_temp(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool made = fd >= 0;
    if (!made && errno != EEXIST)
        return -1;
    if (!made)
        fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        const bool locked = !flock(fd, LOCK_EX | LOCK_NB);
        if (locked ? is_at(fd, path) && (made || empty_own(fd))
                   : made && errno !=
                                 EWOULDBLOCK) /* the file system has no locks */
            return fd;
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* Open a temporary file in the folder of `path`. A long name is cut, so that a
 * number fits behind it. */
static int open_beside(const char *path, fl_str *temp)
{
    const char *base = fl_path_base(path);
    for (int i = 0; i < 100; i++) {
        temp->n = 0;
        fl_str_printf(temp, "%.*s%.200s.tmp%d", (int)(base - path), path, base,
                      i);
        int fd = take_temp(temp->at);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Write all parts, then close. */
static fl_err fill_file(int fd, const char *path, const fl_part *part,
                        int64_t n, bool sync)
{
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++)
        ok = write_all(fd, part[i].at, part[i].n);
    ok = ok && (!sync || !fsync(fd));
    fl_err err = ok ? FL_OK : fail_errno(path, "write it");
    if (close(fd) && !err)
        err = fail_errno(path, "write it");
    return err;
}

static fl_err replace_file(const char *path, const fl_part *part, int64_t n,
                           bool sync)
{
    fl_str temp = {0};
    int fd = open_beside(path, &temp);
    /* a duplicate that keeps the lock until the rename */
    int held = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    fl_err err = fd < 0 ? fail_errno(path, "make it")
                        : fill_file(fd, path, part, n, sync);
    if (!err && rename(temp.at, path))
        err = fail_errno(path, "put it in place");
    if (err && fd >= 0)
        unlink(temp.at);
    if (held >= 0)
        close(held);
    if (!err && sync && !sync_parent(path))
        err = fail_errno(path, "sync its directory");
    fl_str_fini(&temp);
    return err;
}

static fl_err disk_write(const fl_disk *d, const char *path,
                         const fl_part *part, int64_t n, bool sync)
{
    struct stat st;
    if (stat(path, &st) || S_ISREG(st.st_mode))
        return replace_file(path, part, n, sync);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? fail_errno(path, "open it")
                  : fill_file(fd, path, part, n, false);
}

static fl_err disk_mkdtemp(const fl_disk *d, char *path)
{
    return mkdtemp(path) ? FL_OK : fail_errno(path, "make the directory");
}

static fl_err disk_mkdirs(const fl_disk *d, const char *path)
{
    fl_str s = {0};
    fl_err err = FL_OK;
    fl_str_add(&s, path);
    for (size_t i = 1; i <= s.n && !err; i++) {
        if (s.at[i] != '/' && s.at[i])
            continue;
        s.at[i] = 0;
        if (mkdir(s.at, 0777) && errno != EEXIST)
            err = fail_errno(s.at, "make the directory");
        s.at[i] = path[i];
    }
    fl_str_fini(&s);
    struct stat st;
    if (!err && (stat(path, &st) || !S_ISDIR(st.st_mode)))
        err = fl_fail(FL_EIO, "%s: exists, but is not a directory", path);
    return err;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static fl_err disk_list(const fl_disk *d, const char *path, fl_file_names *out)
{
    DIR *dir = opendir(path);
    if (!dir)
        return fail_errno(path, "list it");
    int64_t first = out->n;
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            fl_push(out, fl_mem_strdup(e->d_name));
    closedir(dir);
    if (out->n > first)
        qsort(out->at + first, (size_t)(out->n - first), sizeof *out->at,
              by_name);
    return FL_OK;
}

static fl_err disk_remove(const fl_disk *d, const char *path)
{
    return remove(path) ? fail_errno(path, "remove it") : FL_OK;
}

static fl_err disk_rename(const fl_disk *d, const char *from, const char *to)
{
    return rename(from, to) ? fail_errno(from, "rename it") : FL_OK;
}

struct fl_file {
    int fd;
    char path[];
};

static fl_err open_file(const char *path, int flags, fl_file **out)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_errno(path, "open it");
    size_t n = strlen(path) + 1;
    fl_file *f = fl_mem_alloc(sizeof *f + n);
    f->fd = fd;
    memcpy(f->path, path, n);
    *out = f;
    return FL_OK;
}

static fl_err disk_open(const fl_disk *d, const char *path, fl_file **out)
{
    return open_file(path, O_WRONLY | O_CREAT | O_APPEND, out);
}

static fl_err disk_append(fl_file *f, const void *bytes, size_t n)
{
    return write_all(f->fd, bytes, n) ? FL_OK
                                      : fail_errno(f->path, "append to it");
}

static fl_err disk_sync(fl_file *f)
{
    return fdatasync(f->fd) ? fail_errno(f->path, "sync it") : FL_OK;
}

static fl_err disk_close(fl_file *f)
{
    const fl_err err = close(f->fd) ? fail_errno(f->path, "write it") : FL_OK;
    fl_mem_free(f);
    return err;
}

static fl_err disk_persist(const fl_disk *d, const char *path)
{
    /* A directory that may be written but not read cannot be synced. */
    return sync_path(path, fsync) || errno == EACCES
               ? FL_OK
               : fail_errno(path, "sync it");
}

static fl_err disk_persist_tree(const fl_disk *d, const char *path)
{
    return sync_path(path, syncfs) ? FL_OK
                                   : fail_errno(path, "sync all below it");
}

/* --- locks --- */

/* Open a lock file, for reading only if another user owns it. If there is none
 * and none can be made, the folder cannot be written. */
static fl_err open_lock(const char *path, fl_file **out)
{
    const fl_err err = open_file(path, O_RDWR | O_CREAT, out);
    if (!err || errno != EACCES)
        return err;
    const fl_sentence first = fl_sentence_keep();
    const fl_err again = open_file(path, O_RDONLY, out);
    if (again)
        fl_sentence_restore(&first);
    return again ? err : FL_OK;
}

typedef enum lock_state {
    LOCK_HELD,
    LOCK_BUSY,
    LOCK_UNKNOWN, /* the file system has no locks */
} lock_state;

static fl_err try_lock(const char *path, lock_state *state, fl_file **out)
{
    fl_file *f = NULL;
    FL_TRY(open_lock(path, &f));
    const bool locked = !flock(f->fd, LOCK_EX | LOCK_NB);
    /* the last holder may have removed the file */
    *state = locked && is_at(f->fd, path)                       ? LOCK_HELD
             : locked || errno == EWOULDBLOCK || errno == EINTR ? LOCK_BUSY
                                                                : LOCK_UNKNOWN;
    if (*state == LOCK_UNKNOWN)
        unlink(path);
    if (*state == LOCK_HELD)
        *out = f;
    else
        disk_close(f);
    return FL_OK;
}

static fl_err disk_lock(const fl_disk *d, const char *path, int ms,
                        fl_file **out)
{
    enum {
        PAUSE = 5,         /* milliseconds between two tries */
        TELL_AFTER = 2000, /* milliseconds */
    };
    const int64_t start = fl_clock_now(fl_clock_real());
    bool told = false;
    for (*out = NULL;;) {
        lock_state state = LOCK_BUSY;
        FL_TRY(try_lock(path, &state, out));
        if (state != LOCK_BUSY)
            return FL_OK;
        const int64_t waited =
            (fl_clock_now(fl_clock_real()) - start) / 1000000;
        if (waited >= ms)
            return fl_fail(FL_ETIMEOUT,
                           "%s: another process has held this lock for %.1f s",
                           path, (double)waited / 1000);
        if (waited >= TELL_AFTER && !told)
            FL_WARN("%s: waits for another process that holds this lock, up "
                    "to %d s",
                    path, ms / 1000);
        told |= waited >= TELL_AFTER;
        usleep(PAUSE * 1000);
    }
}

/* Unlock explicitly: a forked child may still have the file open after close.
 */
static void disk_unlock(fl_file *f)
{
    if (!f)
        return;
    unlink(f->path);
    flock(f->fd, LOCK_UN);
    disk_close(f);
}

static fl_err disk_look(const fl_disk *d, const char *path, fl_file **out,
                        int64_t *bytes)
{
    struct stat st;
    fl_file *f = NULL;
    FL_TRY(open_file(path, O_RDONLY, &f));
    if (fstat(f->fd, &st)) {
        disk_close(f);
        return fail_errno(path, "look at it");
    }
    *bytes = st.st_size;
    *out = f;
    return FL_OK;
}

static fl_err disk_read_at(fl_file *f, int64_t from, void *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got =
            pread(f->fd, (char *)to + done, n - done, from + (off_t)done);
        if (got < 0 && errno != EINTR)
            return fail_errno(f->path, "read it");
        if (!got)
            return fl_fail(FL_EIO,
                           "%s: it ends after %lld bytes, %lld more "
                           "were expected",
                           f->path, (long long)(from + (off_t)done),
                           (long long)(n - done));
        done += got > 0 ? (size_t)got : 0;
    }
    return FL_OK;
}

fl_err fl_disk_write(const fl_disk *d, const char *path, const void *bytes,
                     size_t n, bool sync)
{
    return d->write(d, path, &(fl_part){bytes, n}, 1, sync);
}

fl_err fl_disk_make_parents(const fl_disk *d, const char *path)
{
    char *dir = fl_path_parent(path);
    fl_err err = d->mkdirs(d, dir);
    fl_mem_free(dir);
    return err;
}

static fl_err remove_all(const fl_disk *d, const char *path,
                         const fl_file_names *names)
{
    fl_err err = FL_OK;
    for (int64_t i = 0; i < names->n && !err; i++) {
        char *at = fl_path_join(path, names->at[i]);
        if (d->remove(d, at)) /* it is a directory that is not empty */
            err = fl_disk_remove_tree(d, at);
        fl_mem_free(at);
    }
    return err;
}

fl_err fl_disk_remove_tree(const fl_disk *d, const char *path)
{
    fl_file_names names = {0};
    fl_err err = d->list(d, path, &names);
    if (!err)
        err = remove_all(d, path, &names);
    fl_file_names_fini(&names);
    if (!err)
        err = d->remove(d, path);
    return err == FL_ENOENT ? FL_OK : err;
}

void fl_file_names_fini(fl_file_names *n)
{
    for (int64_t i = 0; i < n->n; i++)
        fl_mem_free(n->at[i]);
    fl_vec_fini(n);
}

static const fl_disk real = {
    .size = disk_size,
    .read = disk_read,
    .write = disk_write,
    .mkdirs = disk_mkdirs,
    .mkdtemp = disk_mkdtemp,
    .list = disk_list,
    .remove = disk_remove,
    .rename = disk_rename,
    .open = disk_open,
    .append = disk_append,
    .sync = disk_sync,
    .close = disk_close,
    .persist = disk_persist,
    .persist_tree = disk_persist_tree,
    .lock = disk_lock,
    .unlock = disk_unlock,
    .look = disk_look,
    .read_at = disk_read_at,
};

const fl_disk *fl_disk_real(void)
{
    return &real;
}
