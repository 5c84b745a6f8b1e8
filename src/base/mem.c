/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - malloc, and a count of its uses. */
#include "base/mem.h"

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
    MAP_FROM = 32 << 20, /* bytes; what glibc finds by itself after a while */
};

#define MOST ((size_t)PTRDIFF_MAX - HUGE_PAGE) /* aligned, it still fits */

static _Thread_local uint64_t count;
static _Thread_local size_t limit = MOST;

static void *must(void *p, size_t size)
{
    if (!p) {
        fprintf(stderr, "fluid: out of memory: %zu bytes were refused\n", size);
        abort();
    }
    return p;
}

void *fl_mem_alloc(size_t size)
{
    count++;
    return must(calloc(1, size ? size : 1), size);
}

void *fl_mem_grow(void *old, size_t size)
{
    count++;
    return must(realloc(old, size ? size : 1), size);
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
    size_t align = huge ? HUGE_PAGE : ALIGN; /* advice is for whole pages */
    count++;
    if (size > limit || posix_memalign(&p, align, size + !size))
        return NULL;
    if (huge)
        madvise(p, size, MADV_HUGEPAGE); /* a refusal costs nothing */
    return p;
}

void fl_mem_limit(size_t size)
{
    limit = size < MOST ? size : MOST;
}

void fl_mem_keep(void)
{
    mallopt(M_TRIM_THRESHOLD, KEEP);
    mallopt(M_MMAP_THRESHOLD, MAP_FROM); /* the first alone would freeze it */
}

uint64_t fl_mem_count(void)
{
    return count;
}
