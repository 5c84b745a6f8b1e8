/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the slots of a line, and the column of a batch for each. */
#ifndef FL_DATA_SCHEMA_H
#define FL_DATA_SCHEMA_H

#include "base/arena.h"
#include "tensor/tensor.h"

typedef struct fl_schema_slot {
    const char *name;
    fl_dtype dtype; /* FL_F32 or FL_I64 */
    int64_t width;  /* number of values in an example; 0: any number */
    int column;     /* column in a batch; -1: the slot is skipped */
    int singles; /* how many slots in a row, from this one on, have columns and
                    may have exactly one id */
    fl_shape shape; /* shape in a batch, which sets the first dimension */
} fl_schema_slot;

/* Thread: immutable once made. */
typedef struct fl_schema {
    int n, n_columns;
    fl_schema_slot *slot;
    int *slot_of; /* slot of each column */
} fl_schema;

enum {
    FL_SCHEMA_MAX = 100000 /* slots, and values of a dense slot, at most */
};

/* Own: the arena. Err: EINVAL (a slot that no line can have). */
fl_err fl_schema_init(fl_schema *s, int n, const fl_data_slot *slots,
                      fl_arena *a) FL_MUST_CHECK;

#endif
