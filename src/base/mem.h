/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - the only place that calls malloc.
 *
 * Small allocations never fail: a process that cannot get a few bytes ends with
 * an error message. Memory whose size depends on data is allocated by
 * fl_mem_try, which may return NULL; the caller then returns FL_ENOMEM. */
#ifndef FL_BASE_MEM_H
#define FL_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *fl_mem_alloc(size_t size);           /* zeroed */
void *fl_mem_grow(void *old, size_t size); /* realloc; old may be NULL */
char *fl_mem_strdup(const char *s);
void fl_mem_free(void *p); /* memory of any of these functions; NULL is fine */

/* 64-byte aligned, not zeroed; large memory asks for huge pages. NULL: there is
 * not enough memory. Free it with fl_mem_free. */
void *fl_mem_try(size_t size);

/* From now on fl_mem_try returns NULL for more than `size` bytes on this
 * thread; SIZE_MAX: no limit. For tests. */
void fl_mem_limit(size_t size);

/* From now on the process keeps freed memory, up to 64 MB per heap. For memory
 * that is allocated and freed with every message: the kernel would zero its
 * pages each time. */
void fl_mem_keep(void);

/* The number of allocations on this thread so far. Tests check that a steady
 * step makes none. */
uint64_t fl_mem_count(void);
uint64_t fl_mem_count_all(void); /* on all threads of the process */

#endif
