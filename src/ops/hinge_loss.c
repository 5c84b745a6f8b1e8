/* SPDX-License-Identifier: Apache-2.0 */
/* hinge_loss  Loss        = max(0, 1 - (2 * Labels - 1) * Logits)
 * gradient    Logits@GRAD = Loss > 0 ? -(2 * Labels - 1) * Loss@GRAD : 0
 *
 * Labels are 0 or 1; the formula reads them as -1 and 1. */
#define FL_SELF "ops/hinge_loss.c"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(losses)(int64_t n, const REAL *x, const REAL *label,
                                 REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL loss = 1 - (2 * label[i] - 1) * x[i];
        y[i] = loss < 0 ? 0 : loss; /* in this order NaN stays NaN */
    }
}

FL_CLONES static void FN(slopes)(int64_t n, const REAL *x, const REAL *label,
                                 const REAL *dy, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL side = 2 * label[i] - 1;
        dx[i] = side * x[i] < 1 ? -side * dy[i] : 0;
    }
}

static fl_err FN(hinge_loss)(fl_call *c)
{
    const REAL *x = fl_in(c, "Logits")->data;
    const REAL *label = fl_in(c, "Labels")->data;
    FN(losses)(fl_numel(c, "Logits"), x, label, fl_out(c, "Loss")->data);
    return FL_OK;
}

static fl_err FN(hinge_loss_grad)(fl_call *c)
{
    const REAL *x = fl_in(c, "Logits")->data;
    const REAL *label = fl_in(c, "Labels")->data;
    const REAL *dy = fl_in(c, "Loss@GRAD")->data;
    REAL *dx = fl_out(c, "Logits@GRAD")->data;
    FN(slopes)(fl_numel(c, "Logits"), x, label, dy, dx);
    return FL_OK;
}

#else

FL_REAL_KERNEL(hinge_loss)
FL_REAL_KERNEL(hinge_loss_grad)

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "Logits", FL_REALS));
    FL_TRY(fl_meta_alike(x, "Logits", "Labels"));
    const fl_meta *in = fl_meta_in(x, "Logits", 0);
    const fl_shape *s = &in->shape;
    char t[FL_SHAPE_TEXT];
    if (s->rank != 2 || (s->dim[1] != 1 && s->dim[1] != -1))
        return fl_fail(FL_ESHAPE, "%s: Logits is %s%s, expected [N,1]",
                       fl_meta_type(x), fl_dtype_name(in->dtype),
                       fl_shape_text(s, t));
    fl_meta_set(x, "Loss", 0, in->dtype, s);
    fl_meta_share_lod(x, "Logits", "Loss");
    return FL_OK;
}

const fl_op_def fl_op_hinge_loss = {
    .type = "hinge_loss",
    .in = {{"Logits"}, {"Labels", FL_NOGRAD}},
    .out = {{"Loss"}},
    .infer = infer,
    .run = hinge_loss,
    .grad_in = {"Logits", "Labels", "Loss@GRAD"},
    .grad_run = hinge_loss_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
