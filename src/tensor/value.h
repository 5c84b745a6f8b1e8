/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - what a variable holds at run time, and memory that several share.
 */
#ifndef FL_TENSOR_VALUE_H
#define FL_TENSOR_VALUE_H

#include "base/vec.h"
#include "tensor/tensor.h"

typedef FL_VEC(fl_tensor) fl_tensors;

/* Thread: one at a time. Zero is an empty tensor-to-be. */
struct fl_value {
    struct fl_region *region; /* where the tensor's memory comes from; NULL: the
                                 tensor has memory of its own */
    fl_kind kind;             /* 0: nothing held yet */
    fl_tensor tensor;         /* FL_LOD_TENSOR */
    fl_rows rows;             /* FL_SELECTED_ROWS */
    fl_tensors array; /* FL_LOD_TENSOR_ARRAY, FEED_MINIBATCH, FETCH_LIST */
    bool absent;      /* a shape without elements: this process keeps none */
};

void fl_value_fini(fl_value *v);
fl_err fl_value_copy(fl_value *dst, const fl_value *src) FL_MUST_CHECK;

/* No tensor with memory and no selected rows. */
bool fl_value_is_empty(const fl_value *v);

/* The rows start .. start + n of a tensor, as a view of its memory, or of
 * selected rows, as a copy. Own: only the copy has to be freed. */
fl_err fl_value_slice(fl_value *dst, const fl_value *src, int64_t start,
                      int64_t n) FL_MUST_CHECK;

/* A tensor with a shape and no memory stands for elements that are elsewhere,
 * on servers. What the value held before is gone. Memory that it then gets is
 * that of a tensor as all others. */
void fl_value_set_absent(fl_value *v, fl_dtype dtype, const fl_shape *shape);

/* --- regions (region.c) --- */

/* Memory that tensors of several values use, one after the other. It grows to
 * what the largest of them needs. Zero is an empty region. */
typedef struct fl_region {
    fl_buf *buf;
    FL_VEC(fl_value *) users;
} fl_region;

void fl_region_add(fl_region *r, fl_value *v); /* v is in no region yet */
void fl_region_fini(fl_region *r);             /* its users outlive it */

/* v's tensor gets this type and shape and the memory of v's region. What other
 * users of the region held is lost. */
fl_err fl_region_resize(fl_value *v, fl_dtype dtype,
                        const fl_shape *shape) FL_MUST_CHECK;

int64_t *fl_rows_index(const fl_rows *r);
int64_t fl_rows_width(const fl_rows *r); /* elements of one row */

/* Where a row stands in a list of rows. */
typedef struct fl_row_at {
    uint64_t row; /* above the lowest row of the list */
    int64_t at;   /* position in the list */
} fl_row_at;

/* The list of r in ascending order, equal rows in order of appearance; it lies
 * in `space`, which has room for twice as many. */
const fl_row_at *fl_rows_order(const fl_rows *r, fl_row_at *space);

/* Equal rows added up, each in order of appearance;
 * dst->index ascends. dst and src differ. */
fl_err fl_rows_merge(fl_rows *dst, const fl_rows *src) FL_MUST_CHECK;

/* The rows start .. start + height, which are called 0 .. height there, in
 * order of appearance. dst and src differ. */
fl_err fl_rows_slice(fl_rows *dst, const fl_rows *src, int64_t start,
                     int64_t height) FL_MUST_CHECK;

/* One line of text for logs and `print`. */
const char *fl_kind_name(fl_kind k);

#endif
