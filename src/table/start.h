/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - the values that a row of a table has before its first update.
 *
 * Each element depends only on the seed, the name of the table, the id and the
 * column, not on the order of requests or the number of servers. */
#ifndef FL_TABLE_START_H
#define FL_TABLE_START_H

#include "tensor/tensor.h"

/* How the elements of a new row are drawn. */
typedef enum fl_start_kind {
    FL_START_CONSTANT,  /* all are a */
    FL_START_UNIFORM,   /* uniform from a (inclusive) to b (exclusive) */
    FL_START_NORMAL,    /* mean a, standard deviation b */
    FL_START_TRUNCATED, /* normal, drawn again until within 2 b of a */
    FL_START_PICKED,    /* one of the elements of `from` */
} fl_start_kind;

typedef struct fl_table_start {
    fl_start_kind kind;
    double a, b; /* parameters of the kind */
    uint64_t seed;
    const fl_tensor *from; /* FL_START_PICKED: its first elements are copied */
} fl_table_start;

/* Thread: any, once it is made. */
typedef struct fl_row_start {
    fl_table_start how;
    fl_dtype dtype; /* f32 or f64 */
    int64_t width;  /* elements of a value or a state */
    uint64_t salt;  /* hash of seed and name */
    fl_tensor pool; /* FL_START_PICKED: the elements to pick from */
} fl_row_start;

/* `name` is that of the table. Err: EINVAL. */
fl_err fl_row_start_init(fl_row_start *s, const fl_table_start *how,
                         const char *name, fl_dtype dtype,
                         int64_t width) FL_MUST_CHECK;
void fl_row_start_fini(fl_row_start *s);

/* Write the start value of an id's row to `value`: width elements. */
void fl_row_start_value(const fl_row_start *s, int64_t id, void *value);

/* Write x to every column of `state`. */
void fl_row_start_state(const fl_row_start *s, double x, void *state);

/* A hash of 64 bits that is a bijection. */
static inline uint64_t fl_table_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
