/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - malloc, and a count of its uses. */
#include "base/mem.h"

#include "base/atomic.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGN = 64,
    HUGE_PAGE = 2 << 20, /* bytes */
    HUGE_FROM = 4 << 20, /* bytes; below this a huge page is mostly waste */
    KEEP = 64 << 20,     /* bytes */
    MAP_FROM =
        32
        << 20, /* bytes; glibc reaches this threshold by itself after a while */
};

#define MOST                                                                   \
    ((size_t)PTRDIFF_MAX - HUGE_PAGE) /* the aligned size still fits           \
                                       */

static _Thread_local uint64_t count;
static fl_count allocations; /* of all threads */
static _Thread_local size_t limit = MOST;

static void *must_get(void *p, size_t size)
{
    if (!p) {
        fprintf(stderr, "fluid: out of memory: %zu bytes were refused\n", size);
        abort();
    }
    return p;
}

static void add_one(void)
{
    count++;
    fl_count_up(&allocations);
}

void *fl_mem_alloc(size_t size)
{
    add_one();
    return must_get(calloc(1, size ? size : 1), size);
}

void *fl_mem_grow(void *old, size_t size)
{
    add_one();
    return must_get(realloc(old, size ? size : 1), size);
}

char *fl_mem_strdup(const char *s)
{
    size_t size = strlen(s) + 1;
    return memcpy(fl_mem_grow(NULL, size), s, size);
}

void fl_mem_free(void *p)
{
    free(p);
}

void *fl_mem_try(size_t size)
{
    void *p;
    bool huge = size >= HUGE_FROM;
    size_t align = huge ? HUGE_PAGE : ALIGN; /* madvise works on whole pages */
    add_one();
    if (size > limit || posix_memalign(&p, align, size + !size))
        return NULL;
    if (huge)
        madvise(p, size, MADV_HUGEPAGE); /* may be refused */
    return p;
}

void fl_mem_limit(size_t size)
{
    limit = size < MOST ? size : MOST;
}

void fl_mem_keep(void)
{
    mallopt(M_TRIM_THRESHOLD, KEEP);
    /* Setting only the first option would freeze this one at its default. */
    mallopt(M_MMAP_THRESHOLD, MAP_FROM);
}

uint64_t fl_mem_count(void)
{
    return count;
}

uint64_t fl_mem_count_all(void)
{
    return (uint64_t)fl_count_get(&allocations);
}
