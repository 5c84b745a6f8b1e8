/* SPDX-License-Identifier: Apache-2.0 */
/* records.h - examples in memory, each in contiguous bytes.
 *
 * Shuffled examples are read in random order: a contiguous example costs one
 * cache miss, not one for each slot. A record has, for each used slot in order
 * and without padding,
 *
 *     [ n, value .. ]  for a sparse slot, n in 4 bytes
 *     [ value ..    ]  for a dense slot */
#ifndef FL_DATA_RECORDS_H
#define FL_DATA_RECORDS_H

#include "base/vec.h"
#include "data/batch.h"

/* Thread: one at a time. Zero is empty. */
typedef struct fl_records {
    FL_VEC(const char *) at; /* address of each example */
    FL_VEC(char *) chunks;
    size_t used, size; /* bytes of the last chunk */
} fl_records;

void fl_records_fini(fl_records *r);

/* Append every row of a complete batch. */
fl_err fl_records_add(fl_records *r, const fl_batch *b) FL_MUST_CHECK;

/* Add the example to a batch as its next row. */
fl_err fl_record_get(const char *record, fl_batch *b) FL_MUST_CHECK;

#endif
