/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - slices a batch for places, and joins or sums their results. */
#ifndef FL_EXEC_JOIN_H
#define FL_EXEC_JOIN_H

#include "tensor/value.h"

/* The largest number of slices: the number of sequences, or of rows. It is at
 * least 1: a tensor without rows or with a wrong shape stays whole, and the
 * shape rules of the plan judge it. */
int64_t fl_tensor_slices(const fl_tensor *t);

/* Slice i of n. All have the same number of rows, and the last one has the rest
 * too. dst borrows the elements of src; its LoD is a copy, in memory that the
 * next call reuses. */
fl_err fl_tensor_slice(fl_tensor *dst, const fl_tensor *src, int i,
                       int n) FL_MUST_CHECK;

/* Concatenate tensors along axis 0, with their LoD. Tensors without memory are
 * skipped; if all are, dst has no memory either. The order of
 * the list may change. dst is not in it. Err: ESHAPE if shapes do not fit. */
fl_err fl_tensors_join(fl_tensor *dst, int n,
                       const fl_tensor **src) FL_MUST_CHECK;

/* dst becomes the sum of n > 0 values, added in the order of the list, so that
 * the bits are the same each time. Selected rows are concatenated. Empty values
 * are skipped; the list may change. dst may be the first value, but no other.
 * Err: ESHAPE if shapes do not fit. */
fl_err fl_values_sum(fl_value *dst, int n, fl_value **src) FL_MUST_CHECK;

#endif
