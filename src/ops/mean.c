/* SPDX-License-Identifier: Apache-2.0 */
/* mean      Out    = sum of X / number of elements, shape [1]
 * gradient  X@GRAD = Out@GRAD / number of elements, everywhere */
#define FL_SELF "ops/mean.c"
#include "op/real.h"
#ifdef REAL

static fl_err FN(mean)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data;
    REAL *y = fl_out(c, "Out")->data;
    int64_t n = fl_numel(c, "X");
    *y = FN(fl_sum)(n, x) / n;
    return FL_OK;
}

static fl_err FN(mean_grad)(fl_call *c)
{
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (!dx)
        return FL_OK;
    int64_t n = fl_numel(c, "X");
    REAL *to = dx->data, share = *dy / n;
    for (int64_t i = 0; i < n; i++)
        to[i] = share;
    return FL_OK;
}

#else

FL_REAL_KERNEL(mean)
FL_REAL_KERNEL(mean_grad)

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_not_empty(x, "X"));
    return fl_infer_scalar(x);
}

const fl_op_def fl_op_mean = {
    .type = "mean",
    .in = {{"X", FL_GRAD_UNREAD}},
    .out = {{"Out"}},
    .infer = infer,
    .run = mean,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = mean_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
