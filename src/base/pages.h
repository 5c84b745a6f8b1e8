/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - much memory at once, straight from the system, and what is left.
 *
 * For memory that stays long and is read all over the place: it lies on huge
 * pages where the system gives them, so that few addresses have to be looked
 * up. Pages cost memory only once they are touched. */
#ifndef FL_BASE_PAGES_H
#define FL_BASE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_HUGE_PAGE = 2 << 20 /* bytes */
};

/* Zeroed; of FL_HUGE_PAGE bytes or more it starts at a multiple of that, and
 * huge pages are asked for. NULL when not to be had. */
void *fl_pages_map(size_t size);
void fl_pages_unmap(void *p, size_t size); /* as mapped; NULL is fine */

/* The same pages and zeroed ones behind them, maybe at another address; nothing
 * is copied. NULL: not to be had, and the old stays. */
void *fl_pages_grow(void *p, size_t size, size_t larger);

/* In bytes; -1: this system does not tell. */
typedef struct fl_memory {
    int64_t total; /* that this process may ever have */
    int64_t left;  /* that it can have now without taking from others */
    int64_t huge;  /* that it has on huge pages */
} fl_memory;

/* Of the machine, or of the control group where that allows less. `huge` is
 * looked up only if asked for: the system walks all pages for it. */
fl_memory fl_memory_look(bool with_huge);

#endif
