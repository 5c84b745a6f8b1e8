/* SPDX-License-Identifier: Apache-2.0 */
/* move.h - for operators that move elements without computing with them.
 *
 * They work on every dtype: only the size of an element matters. */
#ifndef FL_KERNEL_MOVE_H
#define FL_KERNEL_MOVE_H

#include "op/op.h"

enum {
    FL_BOX_RANK = 2 * FL_MAX_RANK /* expand makes two dimensions of each one */
};

/* A box of elements in two arrays at once. Steps are in elements; a step of 0
 * repeats. Set rank, dim, to and from; with all other fields zero it is at its
 * start. */
typedef struct fl_box {
    int rank;
    int64_t dim[FL_BOX_RANK], to[FL_BOX_RANK], from[FL_BOX_RANK];
    int64_t at[FL_BOX_RANK]; /* current index in each dimension */
    int64_t to_at, from_at;  /* the same position as offsets */
} fl_box;

/* Append a dimension. A dimension of size 1 is left out, and a dimension that
 * continues the last one in both arrays is merged with it, so that runs get
 * long. */
void fl_box_dim(fl_box *b, int64_t dim, int64_t to, int64_t from);

/* Walk over all dimensions but the last; false at the end. */
bool fl_box_next(fl_box *b);

/* Elements of `size` bytes (1, 2, 4, 8) from one array to the other. */
void fl_box_copy(fl_box *b, size_t size, void *to, const void *from);

/* The steps of a dense row-major array. */
void fl_box_steps(const fl_shape *s, int64_t step[FL_MAX_RANK]);

/* Copy n runs of `bytes` bytes. The steps are the distances between two runs.
 */
void fl_move_runs(int64_t n, size_t bytes, char *to, size_t to_step,
                  const char *from, size_t from_step);

/* Check that every input of a list is given. Error: "concat: X 1 is missing".
 */
fl_err fl_move_list(const fl_infer *x, const char *slot) FL_MUST_CHECK;

/* `axis` of something with `rank` dimensions; negative counts from the end.
 * ESHAPE: "concat: axis 3 is not an axis of X [2,4]". */
fl_err fl_move_axis(const fl_infer *x, const char *slot, int64_t axis, int rank,
                    int *out) FL_MUST_CHECK;

/* Output XShape is [0, dims of X]: the shape of X, which the gradient needs, in
 * a tensor without elements. */
fl_err fl_infer_xshape(fl_infer *x) FL_MUST_CHECK;
fl_err fl_infer_xshape_grad(fl_infer *x) FL_MUST_CHECK; /* X@GRAD back */

#define FL_INDEXES (FL_SET(FL_I64) | FL_SET(FL_I32)) /* for fl_meta_check */
/* Element i of a tensor of whole numbers. */
int64_t fl_move_index_at(const fl_tensor *t, int64_t i);

/* Each input of `slot` holds one whole number:
 * "reshape2: ShapeTensor 0 is [0], expected one element". */
fl_err fl_move_check_one(const fl_infer *x, const char *slot) FL_MUST_CHECK;

/* Whole numbers given as a tensor `whole`, or one each in the list `parts`; *n
 * of them, at most FL_MAX_RANK. */
fl_err fl_move_numbers(const fl_call *c, const char *whole, const char *parts,
                       int *n, int64_t out[FL_MAX_RANK]) FL_MUST_CHECK;

/* The shape that a list attribute gives; at least `least` in each dimension.
 * EINVAL: "fill_constant: shape [2,-1] has a dimension below 0". */
fl_err fl_move_shape(const fl_infer *x, const char *attr, int64_t least,
                     fl_shape *out) FL_MUST_CHECK;

/* The same, and dimension output_dim_idx is dimension input_dim_idx of Input:
 * its number of sequences if that is dimension 0 and Input has sequences,
 * unless the operator has the attribute by_rows and it is true. */
fl_err fl_move_batch_shape(const fl_infer *x, fl_shape *out) FL_MUST_CHECK;

/* The element type that an INT attribute names. */
fl_err fl_move_dtype(const fl_infer *x, const char *attr,
                     fl_dtype *out) FL_MUST_CHECK;

#endif
