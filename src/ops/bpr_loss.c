/* SPDX-License-Identifier: Apache-2.0 */
/* bpr_loss  Y = the mean over all other classes j of -log sigmoid(X[Label] -
 *           X[j]), for each row
 * gradient  X@GRAD[j] = Y@GRAD * sigmoid(X[j] - X[Label]) / (classes - 1), and
 *           at the label minus the sum of these */
#define FL_SELF "ops/bpr_loss.c"
#include "op/real.h"
#include "op/vecmath.h"

#ifndef FL_OPS_BPR_LOSS_C
#define FL_OPS_BPR_LOSS_C

#include "kernel/label.h"

static int64_t classes_of(const fl_tensor *t)
{
    return t->shape.dim[t->shape.rank - 1];
}

#endif
#ifdef REAL

static fl_err FN(bpr_loss)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const int64_t *label = fl_in(c, "Label")->data, n = classes_of(in);
    REAL *y = fl_out(c, "Y")->data;
    FL_TRY(fl_label_check(c, "Label", n, 0));
    for (int64_t i = 0, rows = fl_numel(c, "Label"); i < rows; i++) {
        const REAL *x = (REAL *)in->data + i * n;
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            if (j != label[i])
                sum += FN(fl_log)(1 + FN(fl_exp)(x[j] - x[label[i]]));
        y[i] = (REAL)sum / (REAL)(n - 1);
    }
    return FL_OK;
}

static fl_err FN(bpr_loss_grad)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const int64_t *label = fl_in(c, "Label")->data, n = classes_of(in);
    const REAL *dy = fl_in(c, "Y@GRAD")->data;
    FL_TRY(fl_label_check(c, "Label", n, 0));
    for (int64_t i = 0, rows = fl_numel(c, "Label"); i < rows; i++) {
        const REAL *x = (REAL *)in->data + i * n;
        REAL *dx = (REAL *)fl_out(c, "X@GRAD")->data + i * n;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const REAL slope = FN(fl_sigmoid)(x[j] - x[label[i]]);
            dx[j] = dy[i] * slope / (REAL)(n - 1);
            sum += j == label[i] ? 0 : dx[j];
        }
        dx[label[i]] = (REAL)-sum;
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(bpr_loss)
FL_REAL_KERNEL(bpr_loss_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_shape *s = &in->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (s->rank < 2 || (s->dim[s->rank - 1] >= 0 && s->dim[s->rank - 1] < 2))
        return fl_fail(FL_ESHAPE,
                       "%s: X is %s, expected [.., classes], two or "
                       "more",
                       fl_meta_type(x), fl_shape_text(s, text));
    FL_TRY(fl_meta_label(x, "X", "Label", s->rank - 1, false));
    const fl_shape one = fl_shape_single(s, s->rank - 1);
    fl_meta_set(x, "Y", 0, in->dtype, &one);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

const fl_op_def fl_op_bpr_loss = {
    .type = "bpr_loss",
    .in = {{"X"}, {"Label", FL_NOGRAD}},
    .out = {{"Y"}},
    .infer = infer,
    .run = bpr_loss,
    .grad_in = {"X", "Label", "Y@GRAD"},
    .grad_run = bpr_loss_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
