/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - what a variable holds at run time, and memory that several
 * variables share. */
#ifndef FL_TENSOR_VALUE_H
#define FL_TENSOR_VALUE_H

#include "base/vec.h"
#include "tensor/tensor.h"

typedef FL_VEC(fl_tensor) fl_tensors;

/* Thread: one at a time. All zero is an empty value that will be a tensor. */
struct fl_value {
    struct fl_region *region; /* where the tensor's memory comes from; NULL: the
                                 tensor has memory of its own */
    fl_kind kind;             /* 0: the value is empty */
    fl_tensor tensor;         /* FL_LOD_TENSOR */
    fl_rows rows;             /* FL_SELECTED_ROWS */
    fl_tensors array; /* FL_LOD_TENSOR_ARRAY, FEED_MINIBATCH, FETCH_LIST */
    bool absent; /* the tensor has a shape but no elements in this process */
};

void fl_value_fini(fl_value *v);
fl_err fl_value_copy(fl_value *dst, const fl_value *src) FL_MUST_CHECK;

/* Whether it has neither a tensor with memory nor selected rows. */
bool fl_value_is_empty(const fl_value *v);

/* The rows start .. start + n of a tensor, as a view of its memory, or of
 * selected rows, as a copy. Own: only the copy has to be freed. */
fl_err fl_value_slice(fl_value *dst, const fl_value *src, int64_t start,
                      int64_t n) FL_MUST_CHECK;

/* A tensor with a shape and no memory stands for elements that are elsewhere,
 * on servers. The old content of the value is lost. If the tensor is given
 * memory later, it is an ordinary tensor again. */
void fl_value_set_absent(fl_value *v, fl_dtype dtype, const fl_shape *shape);

/* --- regions (region.c) --- */

/* Memory that tensors of several values use, one after the other. It grows to
 * what the largest of them needs. Zero is an empty region. */
typedef struct fl_region {
    fl_buf *buf;
    FL_VEC(fl_value *) users;
} fl_region;

void fl_region_add(fl_region *r, fl_value *v); /* v must not be in a region */
void fl_region_fini(fl_region *r);             /* its users may outlive it */

/* v's tensor gets this type and shape and the memory of v's region. What other
 * users of the region held is lost. */
fl_err fl_region_resize(fl_value *v, fl_dtype dtype,
                        const fl_shape *shape) FL_MUST_CHECK;

int64_t *fl_rows_index(const fl_rows *r);
int64_t fl_rows_width(const fl_rows *r); /* elements of one row */

/* The position of a row in a list of rows. */
typedef struct fl_row_at {
    uint64_t row; /* row number minus the lowest row of the list */
    int64_t at;   /* position in the list */
} fl_row_at;

/* The rows of r in ascending order, with equal rows in their order of
 * appearance. The result is in `space`, which has room for twice as many
 * entries. */
const fl_row_at *fl_rows_order(const fl_rows *r, fl_row_at *space);

/* Add up equal rows, in their order of appearance. dst->index is ascending. dst
 * must not be src. */
fl_err fl_rows_merge(fl_rows *dst, const fl_rows *src) FL_MUST_CHECK;

/* Copy the rows start .. start + height, in their order of appearance. In dst
 * they are numbered 0 .. height. dst must not be src. */
fl_err fl_rows_slice(fl_rows *dst, const fl_rows *src, int64_t start,
                     int64_t height) FL_MUST_CHECK;

/* One line of text for logs and `print`. */
const char *fl_kind_name(fl_kind k);

#endif
