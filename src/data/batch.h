/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - collects examples in tensors, one column for each slot.
 *
 * Values are written directly to the tensors of the caller. Their memory is
 * reused unless somebody else shares it, so that nothing is allocated after the
 * largest batch. */
#ifndef FL_DATA_BATCH_H
#define FL_DATA_BATCH_H

#include "data/schema.h"

typedef struct fl_column {
    union {
        void *data;
        float *f32;
        int64_t *i64;
    };
    int64_t n, cap; /* values */
    int64_t *off;   /* offset of each row, and of the end; NULL: dense */
    fl_tensor *tensor;
} fl_column;

/* Thread: one at a time. */
typedef struct fl_batch {
    const fl_schema *schema;
    fl_column *column;
    int64_t rows, room; /* complete rows so far; the most that fit */
    bool wide;          /* rows may be read by the functions of wide.h */
} fl_batch;

void fl_batch_init(fl_batch *b, const fl_schema *s);
void fl_batch_fini(fl_batch *b);

/* Begin a batch of up to `room` rows in these tensors, one for each column. */
fl_err fl_batch_begin(fl_batch *b, fl_tensor *tensors,
                      int64_t room) FL_MUST_CHECK;

/* Make room for `more` values. */
fl_err fl_column_grow(fl_batch *b, int column, int64_t more) FL_MUST_CHECK;

void fl_batch_keep_row(fl_batch *b); /* all values of the row were added */
void fl_batch_drop_row(fl_batch *b); /* remove the values of the row */

/* End the batch: set the shapes and offsets of the tensors. */
void fl_batch_end(fl_batch *b);

#endif
