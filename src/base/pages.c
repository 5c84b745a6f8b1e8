/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - mmap, and the files in which Linux reports memory.
 *
 * A mapping may start at any page, but a huge page must be aligned. So more is
 * mapped than was asked for, and the surplus at both ends is unmapped. */
#include "base/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void *map_pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void fl_pages_unmap(void *p, size_t size)
{
    if (p && size)
        munmap(p, size);
}

void *fl_pages_map(size_t size)
{
    const uintptr_t page = 4096;
    if (!size || size > PTRDIFF_MAX - FL_HUGE_PAGE)
        return NULL;
    if (size < FL_HUGE_PAGE)
        return map_pages(size);
    char *all = map_pages(size + FL_HUGE_PAGE);
    if (!all)
        return NULL;
    const size_t off = (uintptr_t)all % FL_HUGE_PAGE;
    const size_t skip = off ? FL_HUGE_PAGE - off : 0;
    const size_t end = (skip + size + page - 1) / page * page;
    fl_pages_unmap(all, skip);
    fl_pages_unmap(all + end, size + FL_HUGE_PAGE - end);
    madvise(all + skip, size, MADV_HUGEPAGE); /* may be refused */
    return all + skip;
}

void *fl_pages_grow(void *p, size_t size, size_t larger)
{
    if (mremap(p, size, larger, 0) != MAP_FAILED)
        return p;
    char *to = fl_pages_map(larger); /* aligned to huge pages */
    if (!to)
        return NULL;
    if (mremap(p, size, larger, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to)
        return to;
    fl_pages_unmap(to, larger);
    return NULL;
}

/* --- free memory --- */

/* The number after `key` in a file of lines, times `unit`; without a key the
 * first number of the file. -1: there is none. */
static int64_t number_in(const char *path, const char *key, int64_t unit)
{
    char line[256];
    int64_t n = -1;
    FILE *f = fopen(path, "re");
    while (f && n < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            sscanf(line + strlen(key), "%" SCNd64, &n);
    if (f)
        fclose(f);
    return n < 0 ? -1 : n * unit;
}

/* Apply the limits of the control group. It counts cached files as used memory,
 * but they can be dropped. */
static void look_at_group(fl_memory *m)
{
    static const char folder[] = "/sys/fs/cgroup/";
    char path[64];
    int64_t n[3];
    const char *const names[] = {"memory.max", "memory.current", "memory.stat"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        n[i] = number_in(path, i == 2 ? "file " : "", 1);
    }
    if (n[0] < 0 || n[1] < 0 || n[2] < 0)
        return;
    const int64_t left = n[0] - n[1] + n[2];
    if (m->total < 0 || n[0] < m->total)
        m->total = n[0];
    if (m->left < 0 || left < m->left)
        m->left = left < 0 ? 0 : left;
}

fl_memory fl_memory_look(bool with_huge)
{
    const char *const info = "/proc/meminfo";
    fl_memory m = {.total = number_in(info, "MemTotal:", 1024),
                   .left = number_in(info, "MemAvailable:", 1024),
                   .huge = -1};
    look_at_group(&m);
    if (with_huge)
        m.huge = number_in("/proc/self/smaps_rollup", "AnonHugePages:", 1024);
    return m;
}
