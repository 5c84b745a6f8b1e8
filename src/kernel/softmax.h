/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.h - softmax along one dim, for the operators that contain it. */
#ifndef FL_KERNEL_SOFTMAX_H
#define FL_KERNEL_SOFTMAX_H

#include "op/op.h"

/* A tensor seen along one of its dimensions: element j of line (o, i) is at (o
 * * size + j) * inner + i. */
typedef struct fl_axis {
    int64_t outer, size, inner;
} fl_axis;

/* A negative `axis` counts from the end. */
fl_axis fl_axis_of(const fl_shape *s, int64_t axis);

/* y = softmax(x) along the dim. As in the original, exponents below -64 are
 * taken as -64, so that nothing becomes 0 and every logarithm is finite. */
void fl_softmax_f32(fl_axis at, const float *x, float *y);
void fl_softmax_f64(fl_axis at, const double *x, double *y);

/* Check that `axis` is a dimension of input `slot`, and set *dim to it, counted
 * from 0. */
fl_err fl_meta_axis(const fl_infer *x, const char *slot, int *dim);

#endif
