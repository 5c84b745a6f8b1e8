/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory of a table, counted against a budget.
 *
 * Small blocks come from the heap, larger ones are pages of their own, and
 * large ones a whole number of huge pages. */
#ifndef FL_TABLE_MEMORY_H
#define FL_TABLE_MEMORY_H

#include "base/atomic.h"
#include "base/err.h"

/* What several tables may take together. Thread: any. */
typedef struct fl_budget {
    int64_t limit; /* bytes; 0: until 1/32 of the machine's memory is left */
    fl_count used; /* bytes */
} fl_budget;

/* Thread: one at a time. */
typedef struct fl_table_memory {
    const char *table; /* its name, for sentences */
    fl_budget *budget;
    int64_t taken; /* bytes that the table has now */
    bool warned;   /* the warning about huge pages is decided */
} fl_table_memory;

/* Zeroed memory of *bytes or more; *bytes becomes its size. `rows`: how many
 * rows the table has, for the sentence. Own: *out, until give. Err: ENOMEM, and
 * nothing has changed. */
fl_err fl_table_memory_take(fl_table_memory *m, int64_t rows, size_t *bytes,
                            char **out) FL_MUST_CHECK;

/* Make *p, which has *bytes, larger: at least `larger` bytes. What is new is
 * zeroed; *p may move. Err: ENOMEM, and nothing has changed. */
fl_err fl_table_memory_extend(fl_table_memory *m, int64_t rows, size_t larger,
                              size_t *bytes, char **p) FL_MUST_CHECK;

void fl_table_memory_give(fl_table_memory *m, char *p, size_t bytes);

#endif
