/* SPDX-License-Identifier: Apache-2.0 */
/* rank_loss  Out         = log(1 + e^d) - Label * d, d = Left - Right
 * gradient   Left@GRAD   = (sigmoid(d) - Label) * Out@GRAD
 *            Right@GRAD  = -Left@GRAD
 *
 * Label is how likely Left ranks above Right. */
#define FL_SELF "ops/rank_loss.c"
#include "op/real.h"
#include "op/vecmath.h"
#ifdef REAL

static fl_err FN(rank_loss)(fl_call *c)
{
    const REAL *label = fl_in(c, "Label")->data;
    const REAL *left = fl_in(c, "Left")->data, *right = fl_in(c, "Right")->data;
    REAL *y = fl_out(c, "Out")->data;
    for (int64_t i = 0, n = fl_numel(c, "Left"); i < n; i++) {
        const REAL d = left[i] - right[i];
        /* log(1 + e^d) without overflow */
        y[i] = (d > 0 ? d : 0) + FN(fl_log)(1 + FN(fl_exp)(-RM(fabs)(d))) -
               label[i] * d;
    }
    return FL_OK;
}

static void FN(slopes)(const fl_call *c, const char *slot, REAL sign)
{
    const REAL *label = fl_in(c, "Label")->data;
    const REAL *left = fl_in(c, "Left")->data, *right = fl_in(c, "Right")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *out = fl_out(c, slot);
    REAL *dx = out ? out->data : NULL;
    for (int64_t i = 0, n = fl_numel(c, "Left"); dx && i < n; i++)
        dx[i] = sign * (FN(fl_sigmoid)(left[i] - right[i]) - label[i]) * dy[i];
}

static fl_err FN(rank_loss_grad)(fl_call *c)
{
    FN(slopes)(c, "Left@GRAD", 1);
    FN(slopes)(c, "Right@GRAD", -1);
    return FL_OK;
}

#else

FL_REAL_KERNEL(rank_loss)
FL_REAL_KERNEL(rank_loss_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *left = fl_meta_in(x, "Left", 0);
    FL_TRY(fl_meta_check(x, "Left", FL_REALS));
    FL_TRY(fl_meta_alike(x, "Left", "Right"));
    FL_TRY(fl_meta_alike(x, "Left", "Label"));
    fl_meta_set(x, "Out", 0, left->dtype, &left->shape);
    return FL_OK;
}

const fl_op_def fl_op_rank_loss = {
    .type = "rank_loss",
    .in = {{"Label", FL_NOGRAD}, {"Left"}, {"Right"}},
    .out = {{"Out"}},
    .infer = infer,
    .run = rank_loss,
    .grad_in = {"Label", "Left", "Right", "Out@GRAD"},
    .grad_run = rank_loss_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
