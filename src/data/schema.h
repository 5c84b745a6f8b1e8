/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - which slots the lines have, and what becomes of each. */
#ifndef FL_DATA_SCHEMA_H
#define FL_DATA_SCHEMA_H

#include "base/arena.h"
#include "tensor/tensor.h"

typedef struct fl_schema_slot {
    const char *name;
    fl_dtype dtype; /* FL_F32 or FL_I64 */
    int64_t width;  /* values of an example; 0: any number */
    int column;     /* of a batch; -1: the slot is passed over */
    fl_shape shape; /* of the batch; the first dim is set by it */
} fl_schema_slot;

/* Thread: immutable once made. */
typedef struct fl_schema {
    int n, n_columns;
    fl_schema_slot *slot;
    int *slot_of; /* a column's */
} fl_schema;

enum {
    FL_SCHEMA_MAX = 100000 /* slots; also values of a dense one */
};

/* Lives in the arena. EINVAL: what no line could satisfy. */
fl_err fl_schema_init(fl_schema *s, int n, const fl_data_slot *slots,
                      fl_arena *a) FL_MUST_CHECK;

#endif
