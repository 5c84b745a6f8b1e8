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

#include "ops/label.h"
#include "ops/softmax.h"

#endif
#ifdef REAL

/* A line of one example: class j is at j * step. */
static REAL FN(soft_loss)(int64_t n, int64_t step, const REAL *p,
                          const REAL *label)
{
    REAL sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum -= label[j * step] * (REAL)fl_finite_log(RM(log)(p[j * step]));
    return sum;
}

static fl_err FN(softmax_ce)(fl_call *c)
{
    const fl_tensor *logits = fl_in(c, "Logits");
    const void *label = fl_in(c, "Label")->data;
    REAL *p = fl_out(c, "Softmax")->data, *loss = fl_out(c, "Loss")->data;
    fl_lines_at at = fl_lines_along(&logits->shape, fl_attr_i64(c, "axis"));
    bool soft = fl_attr_bool(c, "soft_label");
    int64_t ignore = fl_attr_i64(c, "ignore_index");
    if (!soft)
        FL_TRY(fl_label_check(c, "Label", at.size, ignore));
    FN(fl_softmax)(at, logits->data, p);
    for (int64_t k = 0; k < at.outer * at.inner; k++) {
        int64_t first = k / at.inner * at.size * at.inner + k % at.inner;
        int64_t hard = soft ? 0 : ((const int64_t *)label)[k];
        if (soft)
            loss[k] = FN(soft_loss)(at.size, at.inner, p + first,
                                    (const REAL *)label + first);
        else if (hard == ignore)
            loss[k] = 0;
        else
            loss[k] = -(REAL)fl_finite_log(RM(log)(p[first + hard * at.inner]));
    }
    return FL_OK;
}

static void FN(soft_grad)(int64_t n, int64_t step, REAL dloss, const REAL *p,
                          const REAL *label, REAL *dx)
{
    REAL sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += label[j * step];
    for (int64_t j = 0; j < n; j++)
        dx[j * step] = (p[j * step] * sum - label[j * step]) * dloss;
}

static void FN(hard_grad)(int64_t n, int64_t step, REAL dloss, const REAL *p,
                          int64_t label, REAL *dx)
{
    for (int64_t j = 0; j < n; j++)
        dx[j * step] = (p[j * step] - (j == label)) * dloss;
}

static fl_err FN(softmax_ce_grad)(fl_call *c)
{
    const fl_tensor *softmax = fl_in(c, "Softmax");
    const void *label = fl_in(c, "Label")->data;
    const REAL *p = softmax->data, *dloss = fl_in(c, "Loss@GRAD")->data;
    REAL *dx = fl_out(c, "Logits@GRAD")->data;
    fl_lines_at at = fl_lines_along(&softmax->shape, fl_attr_i64(c, "axis"));
    bool soft = fl_attr_bool(c, "soft_label");
    int64_t ignore = fl_attr_i64(c, "ignore_index");
    if (!soft)
        FL_TRY(fl_label_check(c, "Label", at.size, ignore));
    for (int64_t k = 0; k < at.outer * at.inner; k++) {
        int64_t first = k / at.inner * at.size * at.inner + k % at.inner;
        int64_t hard = soft ? 0 : ((const int64_t *)label)[k];
        if (soft)
            FN(soft_grad)
        (at.size, at.inner, dloss[k], p + first, (const REAL *)label + first,
         dx + first);
        else FN(hard_grad)(at.size, at.inner, hard == ignore ? 0 : dloss[k],
                           p + first, hard, dx + first);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(softmax_ce)

/* Its first input is the label. */
static fl_err softmax_ce_grad(fl_call *c)
{
    return fl_in(c, "Softmax")->dtype == FL_F64 ? softmax_ce_grad_f64(c)
                                                : softmax_ce_grad_f32(c);
}

/* Label fits `scores`; *loss is the shape of Loss. */
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
