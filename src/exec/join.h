/* join.h - a batch in slices, and what places computed made one. */
#ifndef FL_EXEC_JOIN_H
#define FL_EXEC_JOIN_H

#include "tensor/value.h"

/* How many slices it can have: sequences, or rows. At least 1: what has no
 * rows, or no right shape, stays whole, for a plan to judge. */
int64_t fl_tensor_slices(const fl_tensor *t);

/* Slice i of n: as many rows each, the last has what is left over. dst borrows
 * src's elements; its LoD is its own, whose memory is used again. */
fl_err fl_tensor_slice(fl_tensor *dst, const fl_tensor *src, int i,
                       int n) FL_MUST_CHECK;

/* Tensors behind one another along axis 0, with LoD. Those without memory are
 * left out; of none there comes none. The list is the callee's to change. dst
 * is none of them. ESHAPE: they do not fit. */
fl_err fl_tensors_join(fl_tensor *dst, int n,
                       const fl_tensor **src) FL_MUST_CHECK;

/* dst becomes the sum of n > 0 values, added up in order: the same bits each
 * time. Selected rows are listed behind one another. Values that hold nothing
 * are left out; the list is the callee's to change. dst is none of them, or the
 * first. ESHAPE: they do not fit. */
fl_err fl_values_sum(fl_value *dst, int n, fl_value **src) FL_MUST_CHECK;

#endif
