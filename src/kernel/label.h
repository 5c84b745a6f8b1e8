/* SPDX-License-Identifier: Apache-2.0 */
/* label.h - class labels, for the losses that take them. */
#ifndef FL_KERNEL_LABEL_H
#define FL_KERNEL_LABEL_H

#include "op/op.h"

/* Input `label` fits input `scores`, whose dim `dim` counts classes: i64 with
 * size 1 in that dimension, or with `soft` a weight for each class. */
fl_err fl_meta_label(const fl_infer *x, const char *scores, const char *label,
                     int dim, bool soft) FL_MUST_CHECK;

/* The shape of a loss: `shape` with size 1 in dimension `dim`. */
fl_shape fl_shape_single(const fl_shape *shape, int dim);

/* Check that every label is `ignore` or the number of a class. */
fl_err fl_label_check(const fl_call *c, const char *label, int64_t classes,
                      int64_t ignore) FL_MUST_CHECK;

/* Infinities of a logarithm become 1e20, as in the original. */
static inline double fl_finite_log(double log)
{
    return log == -1.0 / 0.0 ? -1e20 : log == 1.0 / 0.0 ? 1e20 : log;
}

#endif
