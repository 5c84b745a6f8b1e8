/* SPDX-License-Identifier: Apache-2.0 */
/* pow       Out    = X to the power of `factor`
 * gradient  X@GRAD = Out@GRAD * factor * X to the power of (factor - 1)
 *
 * Whole numbers: a factor with a fraction is computed in f64 and cut off. */
#define FL_SELF "ops/pow.c"
#include "op/number.h"
#ifdef NUM

static fl_err FN(pow_run)(fl_call *c)
{
    const NUM *x = fl_in(c, "X")->data;
    NUM *y = fl_out(c, "Out")->data;
    const float factor = fl_attr_f32(c, "factor");
    const int64_t n = fl_numel(c, "X");
#ifdef REAL
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = RM(pow)(x[i], (REAL)factor);
#else
    const int64_t whole = fl_whole((double)factor);
    if ((float)whole == factor)
        for (int64_t i = 0; i < n; i++)
            y[i] = (NUM)fl_whole_pow(x[i], whole);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = NUM_OF(pow((double)x[i], (double)factor));
#endif
    return FL_OK;
}

#ifdef REAL

static fl_err FN(pow_grad)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    const REAL factor = fl_attr_f32(c, "factor");
    FL_APART
    for (int64_t i = 0, n = fl_numel(c, "X"); i < n; i++)
        dx[i] = dy[i] * factor * RM(pow)(x[i], factor - 1);
    return FL_OK;
}

#endif

#else

FL_NUMBER_KERNEL(pow_run)
FL_REAL_KERNEL(pow_grad)

static fl_err infer(fl_infer *x)
{
    const float factor = fl_meta_attr(x, "factor")->f;
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    const fl_dtype dtype = fl_meta_in(x, "X", 0)->dtype;
    if (dtype != FL_F32 && dtype != FL_F64 && !(factor >= 0))
        return fl_fail(FL_EINVAL,
                       "%s: factor is %g and X is %s: a whole number has no "
                       "negative power",
                       fl_meta_type(x), (double)factor, fl_dtype_name(dtype));
    return fl_infer_same(x);
}

const fl_op_def fl_op_pow = {
    .type = "pow",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"factor", FL_ATTR_FLOAT, .f = 1}},
    .infer = infer,
    .run = pow_run,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = pow_grad,
    .grad_infer = fl_infer_grad_alike,
};

#endif
