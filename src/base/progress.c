/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - counts in memory that a process shares with its launcher.
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

/* The mapped page of this process, or `nowhere`; NULL: not determined yet. */
static _Atomic(fl_progress_page *) progress_page;

/* The page of a process that has no such file. */
static fl_progress_page progress_nowhere;

static bool is_progress(int fd)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    return !strncmp(target, "/memfd:" NAME, strlen("/memfd:" NAME));
}

static fl_progress_page *map_page(int fd)
{
    void *at = mmap(NULL, sizeof(fl_progress_page), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static fl_progress_page *find_page(void)
{
    fl_progress_page *p =
        atomic_load_explicit(&progress_page, memory_order_acquire);
    if (p)
        return p;
    /* two threads may map it at the same time, at two addresses */
    p = is_progress(FL_PROGRESS_FD) ? map_page(FL_PROGRESS_FD) : NULL;
    p = p ? p : &progress_nowhere;
    atomic_store_explicit(&progress_page, p, memory_order_release);
    return p;
}

void fl_progress_step(void)
{
    fl_count_up(&find_page()->steps);
}

void fl_progress_reach(int bit)
{
    fl_count *reached = &find_page()->reached;
    if (!(fl_count_get(reached) & bit))
        fl_count_add(reached, bit);
}

fl_progress_page *fl_progress_new(int least, int *fd)
{
    const int low = memfd_create(NAME, MFD_CLOEXEC);
    fl_progress_page *p = NULL;
    *fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, least);
    if (low >= 0)
        close(low);
    if (*fd >= 0 && !ftruncate(*fd, sizeof(fl_progress_page)))
        p = map_page(*fd);
    return p;
}

void fl_progress_free(fl_progress_page *p)
{
    if (p)
        munmap(p, sizeof *p);
}
