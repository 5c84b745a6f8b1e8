/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that is freed all at once. */
#ifndef FL_BASE_ARENA_H
#define FL_BASE_ARENA_H

#include "fluid.h"

#include <stdarg.h>
#include <stddef.h>

/* fl_arena is named in fluid.h. Thread: one at a time. */

fl_arena *fl_arena_new(void);
void fl_arena_free(fl_arena *a);
void fl_arena_reset(fl_arena *a); /* empty it; keeps the largest chunk */

/* Zeroed, 16-byte aligned; never NULL; freed with the arena. */
void *fl_arena_alloc(fl_arena *a, size_t size);
void *fl_arena_dup(fl_arena *a, const void *from, size_t size);
char *fl_arena_strdup(fl_arena *a, const char *s);
char *fl_arena_printf(fl_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
