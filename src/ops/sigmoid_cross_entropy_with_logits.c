/* SPDX-License-Identifier: Apache-2.0 */
/* sigmoid_cross_entropy_with_logits
 *     Out    = max(X, 0) - X * Label + log(1 + exp(-|X|))
 * gradient
 *     X@GRAD = (sigmoid(X) - Label) * Out@GRAD
 *
 * Where Label is ignore_index both are 0; with normalize both are divided by
 * the number of the others. */
#define FL_SELF "ops/sigmoid_cross_entropy_with_logits.c"
#include "op/real.h"

#ifndef FL_OPS_SIGMOID_CROSS_ENTROPY_C
#define FL_OPS_SIGMOID_CROSS_ENTROPY_C

#include "op/vecmath.h"

#endif
#ifdef REAL

FL_CLONES static void FN(losses)(int64_t n, REAL ignore, REAL count,
                                 const REAL *x, const REAL *label, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL positive = x[i] > 0 ? x[i] : 0;
        REAL tail = FN(fl_log)(1 + FN(fl_exp)(-RM(fabs)(x[i])));
        REAL loss = (positive - x[i] * label[i] + tail) / count;
        y[i] = label[i] == ignore ? 0 : loss;
    }
}

FL_CLONES static void FN(slopes)(int64_t n, REAL ignore, REAL count,
                                 const REAL *x, const REAL *label,
                                 const REAL *dy, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL d = (FN(fl_sigmoid)(x[i]) - label[i]) * dy[i] / count;
        dx[i] = label[i] == ignore ? 0 : d;
    }
}

/* The divisor. */
static REAL FN(count_of)(const fl_call *c, REAL ignore)
{
    const REAL *label = fl_in(c, "Label")->data;
    int64_t n = 0;
    if (!fl_attr_bool(c, "normalize"))
        return 1;
    for (int64_t i = 0, size = fl_numel(c, "Label"); i < size; i++)
        n += label[i] != ignore;
    return n ? (REAL)n : (REAL)1e-5;
}

static fl_err FN(sigmoid_ce)(fl_call *c)
{
    const REAL ignore = (REAL)fl_attr_i64(c, "ignore_index");
    const REAL count = FN(count_of)(c, ignore);
    const REAL *x = fl_in(c, "X")->data, *label = fl_in(c, "Label")->data;
    REAL *y = fl_out(c, "Out")->data;
    FN(losses)(fl_numel(c, "X"), ignore, count, x, label, y);
    return FL_OK;
}

static fl_err FN(sigmoid_ce_grad)(fl_call *c)
{
    const REAL ignore = (REAL)fl_attr_i64(c, "ignore_index");
    const REAL count = FN(count_of)(c, ignore);
    const REAL *x = fl_in(c, "X")->data, *label = fl_in(c, "Label")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    FN(slopes)(fl_numel(c, "X"), ignore, count, x, label, dy, dx);
    return FL_OK;
}

#else

FL_REAL_KERNEL(sigmoid_ce)
FL_REAL_KERNEL(sigmoid_ce_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    FL_TRY(fl_infer_real(x));
    return fl_meta_expect(x, "Label", m->dtype, &m->shape);
}

const fl_op_def fl_op_sigmoid_cross_entropy_with_logits = {
    .type = "sigmoid_cross_entropy_with_logits",
    .in = {{"X"}, {"Label", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"ignore_index", FL_ATTR_INT, .i = -100},
             {"normalize", FL_ATTR_BOOL}},
    .infer = infer,
    .run = sigmoid_ce,
    .grad_in = {"X", "Label", "Out@GRAD"},
    .grad_run = sigmoid_ce_grad,
    .grad_infer = fl_infer_grad_alike,
};

#endif
