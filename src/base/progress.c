/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - a count in memory that a process shares with its launcher.
 *
 * Easy to get wrong: a program that a trainer starts may have any file as
 * FL_PROGRESS_FD. So the file is known by its name, which no other has. */
#include "base/progress.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME "fluid-progress"

/* The mapped count of this process, or `nowhere`; NULL: not determined yet. */
static _Atomic(fl_count *) progress_count;

/* Steps of a process that has no such file. */
static fl_count progress_nowhere;

static bool is_progress(int fd)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    return !strncmp(target, "/memfd:" NAME, strlen("/memfd:" NAME));
}

static fl_count *map_count(int fd)
{
    void *at =
        mmap(NULL, sizeof(fl_count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static fl_count *find_count(void)
{
    fl_count *found =
        is_progress(FL_PROGRESS_FD) ? map_count(FL_PROGRESS_FD) : NULL;
    return found ? found : &progress_nowhere;
}

void fl_progress_step(void)
{
    fl_count *c = atomic_load_explicit(&progress_count, memory_order_acquire);
    if (!c) {
        c = find_count(); /* two threads may map it at the same time, at two
                             addresses */
        atomic_store_explicit(&progress_count, c, memory_order_release);
    }
    fl_count_up(c);
}

fl_count *fl_progress_new(int least, int *fd)
{
    const int low = memfd_create(NAME, MFD_CLOEXEC);
    fl_count *c = NULL;
    *fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, least);
    if (low >= 0)
        close(low);
    if (*fd >= 0 && !ftruncate(*fd, sizeof(fl_count)))
        c = map_count(*fd);
    return c;
}

void fl_progress_free(fl_count *c)
{
    if (c)
        munmap(c, sizeof *c);
}
