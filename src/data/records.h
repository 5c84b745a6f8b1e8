/* SPDX-License-Identifier: Apache-2.0 */
/* records.h - examples in memory, each in one piece.
 *
 * Shuffled examples are read from anywhere: one that lies in one piece is one
 * miss of the cache, not one a slot.
 *
 *     [ n, value .. ] of a sparse slot, n in 4 bytes
 *     [ value ..    ] of a dense one
 *
 * for each used slot in turn, nothing between them. */
#ifndef FL_DATA_RECORDS_H
#define FL_DATA_RECORDS_H

#include "base/vec.h"
#include "data/batch.h"

/* Thread: one at a time. Zero is empty. */
typedef struct fl_records {
    FL_VEC(const char *) at; /* each example */
    FL_VEC(char *) chunks;
    size_t used, size; /* of the last chunk */
} fl_records;

void fl_records_fini(fl_records *r);

/* Every row of a batch that has ended. */
fl_err fl_records_add(fl_records *r, const fl_batch *b) FL_MUST_CHECK;

/* The example as the next row of a batch. */
fl_err fl_record_get(const char *record, fl_batch *b) FL_MUST_CHECK;

#endif
