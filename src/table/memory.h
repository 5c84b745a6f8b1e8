/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory of a table, counted against a budget.
 *
 * Small blocks come from the heap, medium ones are mapped pages, and large ones
 * are a whole number of huge pages. */
#ifndef FL_TABLE_MEMORY_H
#define FL_TABLE_MEMORY_H

#include "base/atomic.h"
#include "base/err.h"
#include "state/extents.h"

/* A limit for the memory of several tables together. Thread: any. */
typedef struct fl_budget {
    int64_t limit; /* bytes; 0: all but 1/32 of the machine's memory */
    fl_count used; /* bytes that all tables have now */
} fl_budget;

/* Thread: one at a time. */
typedef struct fl_table_memory {
    const char *table; /* name of the table, for error messages */
    fl_budget *budget;
    int64_t taken;       /* bytes that the table has now */
    fl_extents *extents; /* memory that outlives the process comes from it;
                            NULL: it ends with the process */
    bool warned;         /* missing huge pages have been checked for */
    bool lacks_room;     /* the last fl_table_memory_take has failed because the
                            state of the server had no room */
} fl_table_memory;

/* Allocate at least *bytes of zeroed memory; *bytes becomes its size. `rows` is
 * the number of rows of the table, for the error message. Own: *out, until
 * fl_table_memory_give. Err: ENOMEM, and nothing has changed. */
fl_err fl_table_memory_take(fl_table_memory *m, int64_t rows, size_t *bytes,
                            char **out) FL_MUST_CHECK;

/* Extend *p from *bytes to at least `larger` bytes. The new part is zeroed; *p
 * may move. Err: ENOMEM, and nothing has changed. */
fl_err fl_table_memory_extend(fl_table_memory *m, int64_t rows, size_t larger,
                              size_t *bytes, char **p) FL_MUST_CHECK;

/* After a restart: take memory that is there. Err: those of fl_extents_find. */
fl_err fl_table_memory_find(fl_table_memory *m, uint32_t number, size_t *bytes,
                            char **out) FL_MUST_CHECK;

void fl_table_memory_give(fl_table_memory *m, char *p, size_t bytes);

#endif
