/* SPDX-License-Identifier: Apache-2.0 */
/* norm      Norm   = sqrt(sum of X^2 + epsilon) along axis, whose dim becomes 1
 *           Out    = X / Norm
 * gradient  X@GRAD = (Out@GRAD - X * sum of X * Out@GRAD / Norm^2) / Norm */
#define FL_SELF "ops/norm.c"
#include "op/real.h"

#ifndef FL_OPS_NORM_C
#define FL_OPS_NORM_C

#include "kernel/softmax.h"

#endif
#ifdef REAL

static REAL FN(dot_spread)(int64_t n, int64_t step, const REAL *x,
                           const REAL *y)
{
    double sum = 0;
    if (step == 1)
        return FN(fl_dot)(n, x, y);
    for (int64_t i = 0; i < n; i++)
        sum += x[i * step] * y[i * step];
    return (REAL)sum;
}

static fl_err FN(norm)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    REAL *norm = fl_out(c, "Norm")->data, epsilon = fl_attr_f32(c, "epsilon");
    fl_axis at = fl_axis_of(&x->shape, fl_attr_i64(c, "axis"));
    for (int64_t i = 0; i < at.outer * at.inner; i++) {
        int64_t k = i / at.inner * at.size * at.inner + i % at.inner;
        const REAL *from = (const REAL *)x->data + k;
        REAL *y = (REAL *)fl_out(c, "Out")->data + k;
        norm[i] =
            RM(sqrt)(FN(dot_spread)(at.size, at.inner, from, from) + epsilon);
        for (int64_t j = 0; j < at.size; j++)
            y[j * at.inner] = from[j * at.inner] / norm[i];
    }
    return FL_OK;
}

static fl_err FN(norm_grad)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const REAL *norm = fl_in(c, "Norm")->data;
    fl_axis at = fl_axis_of(&x->shape, fl_attr_i64(c, "axis"));
    for (int64_t i = 0; i < at.outer * at.inner; i++) {
        int64_t k = i / at.inner * at.size * at.inner + i % at.inner;
        const REAL *from = (const REAL *)x->data + k;
        const REAL *dy = (const REAL *)fl_in(c, "Out@GRAD")->data + k;
        REAL *dx = (REAL *)fl_out(c, "X@GRAD")->data + k;
        REAL by =
            FN(dot_spread)(at.size, at.inner, from, dy) / (norm[i] * norm[i]);
        for (int64_t j = 0, s = at.inner; j < at.size; j++)
            dx[j * s] = (dy[j * s] - from[j * s] * by) / norm[i];
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(norm)
FL_REAL_KERNEL(norm_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape s = in->shape;
    int dim;
    FL_TRY(fl_meta_axis(x, "X", &dim));
    s.dim[dim] = 1;
    fl_meta_set(x, "Norm", 0, in->dtype, &s);
    return fl_infer_real(x);
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape s = in->shape;
    int dim;
    FL_TRY(fl_infer_grad_of_rule(x));
    FL_TRY(fl_meta_axis(x, "X", &dim));
    s.dim[dim] = 1;
    return fl_meta_expect(x, "Norm", in->dtype, &s);
}

const fl_op_def fl_op_norm = {
    .type = "norm",
    .in = {{"X"}},
    .out = {{"Norm", FL_INTERMEDIATE}, {"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .required = true},
             {"epsilon", FL_ATTR_FLOAT, .f = 1e-10f}},
    .infer = infer,
    .run = norm,
    .grad_in = {"X", "Norm", "Out@GRAD"},
    .grad_run = norm_grad,
    .grad_infer = infer_grad,
};

#endif
