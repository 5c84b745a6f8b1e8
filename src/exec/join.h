/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - a batch is cut into slices for places, and the results of the places
 * are joined or summed. */
#ifndef FL_EXEC_JOIN_H
#define FL_EXEC_JOIN_H

#include "tensor/value.h"

/* The largest number of slices: the number of sequences, or of rows. It is at
 * least 1: a tensor without rows or with a wrong shape stays whole, and the
 * shape rules of the plan judge it. */
int64_t fl_tensor_slices(const fl_tensor *t);

/* Slice i of n: as many rows each, the last has what is left over. dst borrows
 * src's elements; its LoD is its own, whose memory is used again. */
fl_err fl_tensor_slice(fl_tensor *dst, const fl_tensor *src, int i,
                       int n) FL_MUST_CHECK;

/* Concatenate tensors along axis 0, with their LoD. Tensors without memory are
 * skipped; if all are, dst has no memory either. The callee may change the
 * list. dst is not in it. Err: ESHAPE if shapes do not fit. */
fl_err fl_tensors_join(fl_tensor *dst, int n,
                       const fl_tensor **src) FL_MUST_CHECK;

/* dst becomes the sum of n > 0 values, added up in order: the same bits each
 * time. Selected rows are listed behind one another. Values that hold nothing
 * are left out; the list is the callee's to change. dst is none of them, or the
 * first. ESHAPE: they do not fit. */
fl_err fl_values_sum(fl_value *dst, int n, fl_value **src) FL_MUST_CHECK;

#endif
