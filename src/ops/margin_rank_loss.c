/* SPDX-License-Identifier: Apache-2.0 */
/* margin_rank_loss  Out       = max(0, margin - Label * (X1 - X2))
 *                   Activated = Out > 0 ? 1 : 0
 * gradient          X1@GRAD   = -Label * Activated * Out@GRAD
 *                   X2@GRAD   = +Label * Activated * Out@GRAD
 *
 * Label is 1 where X1 should rank above X2 and -1 where below. */
#define FL_SELF "ops/margin_rank_loss.c"
#include "op/real.h"
#ifdef REAL

static fl_err FN(margin_rank_loss)(fl_call *c)
{
    const REAL margin = fl_attr_f32(c, "margin");
    const REAL *x1 = fl_in(c, "X1")->data, *x2 = fl_in(c, "X2")->data;
    const REAL *label = fl_in(c, "Label")->data;
    REAL *y = fl_out(c, "Out")->data, *on = fl_out(c, "Activated")->data;
    for (int64_t i = 0, n = fl_numel(c, "X1"); i < n; i++) {
        REAL loss = margin - label[i] * (x1[i] - x2[i]);
        on[i] = loss > 0;
        y[i] = on[i] * loss;
    }
    return FL_OK;
}

/* Either gradient may be absent. */
static void FN(add_grad)(fl_call *c, const char *slot, REAL sign)
{
    const REAL *label = fl_in(c, "Label")->data;
    const REAL *on = fl_in(c, "Activated")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *out = fl_out(c, slot);
    REAL *dx = out ? out->data : NULL;
    for (int64_t i = 0, n = fl_numel(c, "Label"); dx && i < n; i++)
        dx[i] = sign * label[i] * on[i] * dy[i];
}

static fl_err FN(margin_rank_loss_grad)(fl_call *c)
{
    FN(add_grad)(c, "X1@GRAD", -1);
    FN(add_grad)(c, "X2@GRAD", 1);
    return FL_OK;
}

#else

FL_REAL_KERNEL(margin_rank_loss)
FL_REAL_KERNEL(margin_rank_loss_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *x1 = fl_meta_in(x, "X1", 0);
    FL_TRY(fl_meta_check(x, "X1", FL_REALS));
    FL_TRY(fl_meta_alike(x, "X1", "X2"));
    FL_TRY(fl_meta_alike(x, "X1", "Label"));
    fl_meta_set(x, "Activated", 0, x1->dtype, &x1->shape);
    fl_meta_set(x, "Out", 0, x1->dtype, &x1->shape);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *label = fl_meta_in(x, "Label", 0);
    FL_TRY(fl_meta_check(x, "Label", FL_REALS));
    FL_TRY(fl_meta_alike(x, "Label", "Activated"));
    FL_TRY(fl_meta_alike(x, "Label", "Out@GRAD"));
    fl_meta_set(x, "X1@GRAD", 0, label->dtype, &label->shape);
    fl_meta_set(x, "X2@GRAD", 0, label->dtype, &label->shape);
    return FL_OK;
}

const fl_op_def fl_op_margin_rank_loss = {
    .type = "margin_rank_loss",
    .in = {{"X1"}, {"X2"}, {"Label", FL_NOGRAD}},
    .out = {{"Activated", FL_INTERMEDIATE}, {"Out"}},
    .attr = {{"margin", FL_ATTR_FLOAT}},
    .infer = infer,
    .run = margin_rank_loss,
    .grad_in = {"Label", "Activated", "Out@GRAD"},
    .grad_run = margin_rank_loss_grad,
    .grad_infer = infer_grad,
};

#endif
