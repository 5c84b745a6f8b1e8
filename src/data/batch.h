/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - examples on their way into tensors, one column a slot.
 *
 * Values are written straight into the memory of the tensors that the caller
 * gave, which is used again when it is theirs alone: after the largest batch
 * has been seen nothing is allocated. */
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
    int64_t *off;   /* of each row, and of the end; NULL: dense */
    fl_tensor *tensor;
} fl_column;

/* Thread: one at a time. */
typedef struct fl_batch {
    const fl_schema *schema;
    fl_column *column;
    int64_t rows, room; /* whole ones, and at most */
} fl_batch;

void fl_batch_init(fl_batch *b, const fl_schema *s);
void fl_batch_fini(fl_batch *b);

/* Start anew in these tensors, one a column, for up to `room` rows. */
fl_err fl_batch_begin(fl_batch *b, fl_tensor *tensors,
                      int64_t room) FL_MUST_CHECK;

/* Room for `more` values. */
fl_err fl_column_grow(fl_batch *b, int column, int64_t more) FL_MUST_CHECK;

void fl_batch_keep_row(fl_batch *b); /* its values have all been added */
void fl_batch_drop_row(fl_batch *b); /* forget what was added of it */

/* The tensors have their shapes and offsets. */
void fl_batch_end(fl_batch *b);

#endif
