/* SPDX-License-Identifier: Apache-2.0 */
/* teacher_student_sigmoid_loss   the loss for a click and for the score of a
 *                                teacher, both in one label: with c(z) = log(1
 * + exp(X)) - X * z
 *
 *     Label        Y
 *     below -1     c(0)                  no click, no teacher
 *     -1 to 0      c(1)                  a click, no teacher
 *     0 to 1       c(0) + c(Label)       no click; Label is the teacher's
 *     1 and above  c(1) + c(Label - 1)   a click; Label - 1 is the teacher's
 *
 * gradient     X@GRAD = (terms of c * sigmoid(X) - sum of z) * Y@GRAD
 *
 * The gradient is 0 where X is at soft_max_up_bound or above it, or at
 * soft_max_lower_bound or below it, so that such outliers change no weights. */
#define FL_SELF "ops/teacher_student_sigmoid_loss.c"
#include "op/real.h"
#ifdef REAL

/* The number of terms c(z) for a label, and the sum of their z. */
static REAL FN(terms)(REAL label, REAL *z)
{
    *z = label < -1 ? 0 : label < 0 ? 1 : label;
    return label < 0 ? 1 : 2;
}

static fl_err FN(teacher_student_sigmoid_loss)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *label = fl_in(c, "Label")->data;
    REAL *y = fl_out(c, "Y")->data;
    for (int64_t i = 0, n = fl_numel(c, "X"); i < n; i++) {
        REAL z, terms = FN(terms)(label[i], &z);
        REAL soft = RM(log1p)(RM(exp)(-RM(fabs)(x[i])));
        y[i] = terms * ((x[i] > 0 ? x[i] : 0) + soft) - x[i] * z;
    }
    return FL_OK;
}

static fl_err FN(teacher_student_sigmoid_loss_grad)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *label = fl_in(c, "Label")->data;
    const REAL *dy = fl_in(c, "Y@GRAD")->data;
    const REAL low = fl_attr_f32(c, "soft_max_lower_bound");
    const REAL up = fl_attr_f32(c, "soft_max_up_bound");
    REAL *dx = fl_out(c, "X@GRAD")->data;
    for (int64_t i = 0, n = fl_numel(c, "X"); i < n; i++) {
        REAL z, terms = FN(terms)(label[i], &z);
        REAL slope = terms / (1 + RM(exp)(-x[i])) - z;
        dx[i] = x[i] >= up || x[i] <= low ? 0 : slope * dy[i];
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(teacher_student_sigmoid_loss)
FL_REAL_KERNEL(teacher_student_sigmoid_loss_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_alike(x, "X", "Label"));
    if (in->shape.rank != 2 || (in->shape.dim[1] != 1 && in->shape.dim[1] >= 0))
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected [N,1]",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    fl_meta_set(x, "Y", 0, in->dtype, &in->shape);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

const fl_op_def fl_op_teacher_student_sigmoid_loss = {
    .type = "teacher_student_sigmoid_loss",
    .in = {{"X"}, {"Label", FL_NOGRAD}},
    .out = {{"Y"}},
    .attr = {{"soft_max_up_bound", FL_ATTR_FLOAT, .f = 15},
             {"soft_max_lower_bound", FL_ATTR_FLOAT, .f = -15}},
    .infer = infer,
    .run = teacher_student_sigmoid_loss,
    .grad_in = {"X", "Label", "Y@GRAD"},
    .grad_run = teacher_student_sigmoid_loss_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
