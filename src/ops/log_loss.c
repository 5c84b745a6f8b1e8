/* SPDX-License-Identifier: Apache-2.0 */
/* log_loss  Loss = -Labels * log(Predicted + epsilon)
 *                  - (1 - Labels) * log(1 - Predicted + epsilon)
 * gradient  Predicted@GRAD = Loss@GRAD * (-Labels / (Predicted + epsilon)
 *                            + (1 - Labels) / (1 - Predicted + epsilon)) */
#define FL_SELF "ops/log_loss.c"
#include "op/real.h"

#ifndef FL_OPS_LOG_LOSS_C
#define FL_OPS_LOG_LOSS_C

#include "op/vecmath.h"

#endif
#ifdef REAL

FL_CLONES static void FN(losses)(int64_t n, REAL e, const REAL *p,
                                 const REAL *l, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = -l[i] * FN(fl_log)(p[i] + e) -
               (1 - l[i]) * FN(fl_log)(1 - p[i] + e);
}

FL_CLONES static void FN(slopes)(int64_t n, REAL e, const REAL *p,
                                 const REAL *l, const REAL *dy, REAL *dp)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dp[i] = dy[i] * ((1 - l[i]) / (1 - p[i] + e) - l[i] / (p[i] + e));
}

static fl_err FN(log_loss)(fl_call *c)
{
    const REAL e = fl_attr_f32(c, "epsilon");
    const REAL *p = fl_in(c, "Predicted")->data;
    const REAL *l = fl_in(c, "Labels")->data;
    REAL *y = fl_out(c, "Loss")->data;
    FN(losses)(fl_numel(c, "Predicted"), e, p, l, y);
    return FL_OK;
}

static fl_err FN(log_loss_grad)(fl_call *c)
{
    const REAL e = fl_attr_f32(c, "epsilon");
    const REAL *p = fl_in(c, "Predicted")->data;
    const REAL *l = fl_in(c, "Labels")->data;
    const REAL *dy = fl_in(c, "Loss@GRAD")->data;
    REAL *dp = fl_out(c, "Predicted@GRAD")->data;
    FN(slopes)(fl_numel(c, "Predicted"), e, p, l, dy, dp);
    return FL_OK;
}

#else

FL_REAL_KERNEL(log_loss)
FL_REAL_KERNEL(log_loss_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Predicted", 0);
    FL_TRY(fl_meta_check(x, "Predicted", FL_REALS));
    FL_TRY(fl_meta_expect(x, "Labels", m->dtype, &m->shape));
    fl_meta_set(x, "Loss", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "Predicted", "Loss");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Predicted", 0);
    FL_TRY(fl_meta_check(x, "Predicted", FL_REALS));
    FL_TRY(fl_meta_expect(x, "Labels", m->dtype, &m->shape));
    FL_TRY(fl_meta_expect(x, "Loss@GRAD", m->dtype, &m->shape));
    fl_meta_set(x, "Predicted@GRAD", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "Predicted", "Predicted@GRAD");
    return FL_OK;
}

const fl_op_def fl_op_log_loss = {
    .type = "log_loss",
    .in = {{"Predicted"}, {"Labels", FL_NOGRAD}},
    .out = {{"Loss"}},
    .attr = {{"epsilon", FL_ATTR_FLOAT, .required = true}},
    .infer = infer,
    .run = log_loss,
    .grad_in = {"Predicted", "Labels", "Loss@GRAD"},
    .grad_run = log_loss_grad,
    .grad_infer = infer_grad,
};

#endif
