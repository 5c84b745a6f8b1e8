/* SPDX-License-Identifier: Apache-2.0 */
/* squared_l2_norm  Out    = sum of X^2, shape [1]
 * gradient         X@GRAD = 2 * Out@GRAD * X */
#define FL_SELF "ops/squared_l2_norm.c"
#include "op/real.h"
#ifdef REAL

static fl_err FN(norm)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data;
    REAL *y = fl_out(c, "Out")->data;
    *y = FN(fl_dot)(fl_numel(c, "X"), x, x);
    return FL_OK;
}

static fl_err FN(norm_grad)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (!dx)
        return FL_OK;
    REAL *out = dx->data, slope = 2 * *dy;
    for (int64_t i = 0, n = fl_numel(c, "X"); i < n; i++)
        out[i] = slope * x[i];
    return FL_OK;
}

#else

FL_REAL_KERNEL(norm)
FL_REAL_KERNEL(norm_grad)

const fl_op_def fl_op_squared_l2_norm = {
    .type = "squared_l2_norm",
    .in = {{"X"}},
    .out = {{"Out"}},
    .infer = fl_infer_scalar,
    .run = norm,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = norm_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
