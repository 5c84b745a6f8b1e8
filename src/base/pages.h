/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - large memory from mmap, and how much memory is free.
 *
 * For memory that lives long and is read at random addresses: huge pages, if
 * the system has them, need few address translations. A page takes memory only
 * after it was touched. */
#ifndef FL_BASE_PAGES_H
#define FL_BASE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_HUGE_PAGE = 2 << 20 /* bytes */
};

/* Zeroed. From FL_HUGE_PAGE bytes on, it is aligned to that size and asks for
 * huge pages. NULL: there is not enough memory. */
void *fl_pages_map(size_t size);
void fl_pages_unmap(void *p, size_t size); /* size: as mapped; NULL is fine */

/* Extend a mapping by zeroed pages. The address may change; nothing is copied.
 * NULL: there is not enough memory, and the old mapping is unchanged. */
void *fl_pages_grow(void *p, size_t size, size_t larger);

/* In bytes; -1: not known on this system. */
typedef struct fl_memory {
    int64_t total; /* memory that this process may use at most */
    int64_t left;  /* memory that is free now */
    int64_t huge;  /* memory of this process that is on huge pages */
} fl_memory;

/* The memory of the machine, or of the control group if that allows less.
 * `huge` is read only if `with_huge`, because the kernel walks all pages for
 * it. */
fl_memory fl_memory_look(bool with_huge);

#endif
