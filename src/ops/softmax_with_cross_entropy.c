/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_with_cross_entropy
 *     Softmax = softmax(Logits) along `axis`
 *     Loss    = -log Softmax[Label], or with soft_label
 *     Loss    = -sum of Label * log Softmax
 * gradient
 *     Logits@GRAD = (Softmax - onehot(Label)) * Loss@GRAD, or
 *     Logits@GRAD = (Softmax * sum of Label - Label) * Loss@GRAD
 *
 * A label that is ignore_index gives 0 in both directions. */
#define FL_SELF "ops/softmax_with_cross_entropy.c"
#include "op/real.h"

#ifndef FL_OPS_SOFTMAX_WITH_CROSS_ENTROPY_C
#define FL_OPS_SOFTMAX_WITH_CROSS_ENTROPY_C

#include "kernel/label.h"
#include "kernel/softmax.h"

#endif
#ifdef REAL

/* One example: class j is at j * at.inner. */
static REAL FN(soft_loss)(fl_axis at, const REAL *p, const REAL *label)
{
    double sum = 0;
    for (int64_t j = 0; j < at.size * at.inner; j += at.inner)
        sum -= label[j] * (REAL)fl_finite_log(RM(log)(p[j]));
    return (REAL)sum;
}

static REAL FN(hard_loss)(fl_axis at, const REAL *p, int64_t label)
{
    return -(REAL)fl_finite_log(RM(log)(p[label * at.inner]));
}

static fl_err FN(softmax_ce)(fl_call *c)
{
    const fl_tensor *logits = fl_in(c, "Logits"), *label = fl_in(c, "Label");
    REAL *p = fl_out(c, "Softmax")->data, *loss = fl_out(c, "Loss")->data;
    fl_axis at = fl_axis_of(&logits->shape, fl_attr_i64(c, "axis"));
    int64_t ignore = fl_attr_i64(c, "ignore_index");
    bool soft = fl_attr_bool(c, "soft_label");
    const REAL *weight = soft ? label->data : NULL;
    const int64_t *hard = soft ? NULL : label->data;
    if (hard)
        FL_TRY(fl_label_check(c, "Label", at.size, ignore));
    FN(fl_softmax)(at, logits->data, p);
    for (int64_t k = 0; k < at.outer * at.inner; k++) {
        int64_t first = k / at.inner * at.size * at.inner + k % at.inner;
        if (weight)
            loss[k] = FN(soft_loss)(at, p + first, weight + first);
        else
            loss[k] =
                hard[k] == ignore ? 0 : FN(hard_loss)(at, p + first, hard[k]);
    }
    return FL_OK;
}

static void FN(soft_grad)(fl_axis at, REAL dloss, const REAL *p,
                          const REAL *label, REAL *dx)
{
    REAL sum = 0;
    for (int64_t j = 0; j < at.size * at.inner; j += at.inner)
        sum += label[j];
    for (int64_t j = 0; j < at.size * at.inner; j += at.inner)
        dx[j] = (p[j] * sum - label[j]) * dloss;
}

static void FN(hard_grad)(fl_axis at, REAL dloss, const REAL *p, int64_t label,
                          REAL *dx)
{
    for (int64_t j = 0; j < at.size; j++)
        dx[j * at.inner] = (p[j * at.inner] - (j == label)) * dloss;
}

static fl_err FN(softmax_ce_grad)(fl_call *c)
{
    const fl_tensor *softmax = fl_in(c, "Softmax"), *label = fl_in(c, "Label");
    const REAL *p = softmax->data, *dloss = fl_in(c, "Loss@GRAD")->data;
    REAL *dx = fl_out(c, "Logits@GRAD")->data;
    fl_axis at = fl_axis_of(&softmax->shape, fl_attr_i64(c, "axis"));
    int64_t ignore = fl_attr_i64(c, "ignore_index");
    bool soft = fl_attr_bool(c, "soft_label");
    const REAL *weight = soft ? label->data : NULL;
    const int64_t *hard = soft ? NULL : label->data;
    if (hard)
        FL_TRY(fl_label_check(c, "Label", at.size, ignore));
    for (int64_t k = 0; k < at.outer * at.inner; k++) {
        int64_t i = k / at.inner * at.size * at.inner + k % at.inner;
        REAL d = hard && hard[k] == ignore ? 0 : dloss[k];
        if (weight)
            FN(soft_grad)(at, d, p + i, weight + i, dx + i);
        else
            FN(hard_grad)(at, d, p + i, hard[k], dx + i);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(softmax_ce)

/* The first input is the label, so the dtype comes from another one. */
static fl_err softmax_ce_grad(fl_call *c)
{
    return fl_in(c, "Softmax")->dtype == FL_F64 ? softmax_ce_grad_f64(c)
                                                : softmax_ce_grad_f32(c);
}

/* Check that Label fits `scores`; *loss becomes the shape of Loss. */
static fl_err loss_shape(const fl_infer *x, const char *scores, fl_shape *loss)
{
    int dim;
    FL_TRY(fl_meta_check(x, scores, FL_REALS));
    FL_TRY(fl_meta_axis(x, scores, &dim));
    FL_TRY(fl_meta_label(x, scores, "Label", dim,
                         fl_meta_attr(x, "soft_label")->b));
    *loss = fl_shape_single(&fl_meta_in(x, scores, 0)->shape, dim);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Logits", 0);
    fl_shape loss;
    FL_TRY(loss_shape(x, "Logits", &loss));
    fl_meta_set(x, "Softmax", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "Logits", "Softmax");
    fl_meta_set(x, "Loss", 0, m->dtype, &loss);
    fl_meta_share_lod(x, "Logits", "Loss");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Softmax", 0);
    fl_shape loss;
    FL_TRY(loss_shape(x, "Softmax", &loss));
    FL_TRY(fl_meta_expect(x, "Loss@GRAD", m->dtype, &loss));
    fl_meta_set(x, "Logits@GRAD", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "Softmax", "Logits@GRAD");
    return FL_OK;
}

const fl_op_def fl_op_softmax_with_cross_entropy = {
    .type = "softmax_with_cross_entropy",
    .in = {{"Logits"}, {"Label", FL_NOGRAD}},
    .out = {{"Softmax", FL_INTERMEDIATE}, {"Loss"}},
    .attr = {{"soft_label", FL_ATTR_BOOL},
             {"numeric_stable_mode", FL_ATTR_BOOL, .b = true},
             {"ignore_index", FL_ATTR_INT, .i = -100},
             {"axis", FL_ATTR_INT, .i = -1}},
    .infer = infer,
    .run = softmax_ce,
    .grad_in = {"Label", "Softmax", "Loss@GRAD"},
    .grad_run = softmax_ce_grad,
    .grad_infer = infer_grad,
};

#endif
