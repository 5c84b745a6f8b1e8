/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - the only place that calls malloc.
 *
 * Small things never fail: a process that cannot have a few bytes ends with a
 * sentence. Memory whose size comes from data goes through fl_mem_try, which
 * may return NULL; the caller makes that FL_ENOMEM. */
#ifndef FL_BASE_MEM_H
#define FL_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *fl_mem_alloc(size_t size);           /* zeroed */
void *fl_mem_grow(void *old, size_t size); /* realloc; old may be NULL */
char *fl_mem_strdup(const char *s);
void fl_mem_free(void *p); /* any of these; NULL is fine */

/* 64-byte aligned, not zeroed; huge pages are asked for when large.
 * NULL when not to be had. End with fl_mem_free. */
void *fl_mem_try(size_t size);

/* From now on fl_mem_try refuses more than `size` bytes on this thread, as if
 * they were not to be had; SIZE_MAX: no limit. For tests. */
void fl_mem_limit(size_t size);

/* From now on the process keeps what it frees, up to 64 MB a heap: for memory
 * that comes and goes with every message, whose pages would be zeroed anew. */
void fl_mem_keep(void);

/* Allocations made on this thread so far: tests demand that it stands still. */
uint64_t fl_mem_count(void);

#endif
