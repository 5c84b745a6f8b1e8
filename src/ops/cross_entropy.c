/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy  Y = -log X[Label] over the last dim, or with soft_label
 *                Y = -sum of Label * log X
 * gradient       X@GRAD = -Y@GRAD / X at the label (0 elsewhere), or
 *                X@GRAD = -Y@GRAD * Label / X
 *
 * cross_entropy2 is the first kind; it keeps X[Label] in MatchX and X's shape
 * in XShape, so that its gradient needs no X.
 *
 * A label that is ignore_index gives 0 in both directions. */
#define FL_SELF "ops/cross_entropy.c"
#include "op/real.h"

#ifndef FL_OPS_CROSS_ENTROPY_C
#define FL_OPS_CROSS_ENTROPY_C

#include "kernel/label.h"

#include <string.h>

static int64_t classes_of(const fl_tensor *t)
{
    return t->shape.dim[t->shape.rank - 1];
}

#endif
#ifdef REAL

static inline REAL FN(loss_of)(REAL x)
{
    return -(REAL)fl_finite_log(RM(log)(x));
}

/* match: receives X[Label]; or NULL. */
static fl_err FN(hard)(fl_call *c, REAL *match)
{
    const fl_tensor *t = fl_in(c, "X");
    const REAL *x = t->data;
    const int64_t *label = fl_in(c, "Label")->data;
    REAL *y = fl_out(c, "Y")->data;
    int64_t n = classes_of(t), ignore = fl_attr_i64(c, "ignore_index");
    FL_TRY(fl_label_check(c, "Label", n, ignore));
    for (int64_t i = 0, rows = fl_numel(c, "Label"); i < rows; i++) {
        bool on = label[i] != ignore;
        REAL p = on ? x[i * n + label[i]] : 0;
        y[i] = on ? FN(loss_of)(p) : 0;
        if (match)
            match[i] = p;
    }
    return FL_OK;
}

static void FN(soft)(fl_call *c)
{
    const fl_tensor *t = fl_in(c, "X");
    const REAL *x = t->data, *label = fl_in(c, "Label")->data;
    REAL *y = fl_out(c, "Y")->data;
    int64_t n = classes_of(t), rows = fl_tensor_numel(fl_out(c, "Y"));
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = i * n; j < (i + 1) * n; j++)
            sum += label[j] * FN(loss_of)(x[j]);
        y[i] = (REAL)sum;
    }
}

static fl_err FN(cross_entropy)(fl_call *c)
{
    if (!fl_attr_bool(c, "soft_label"))
        return FN(hard)(c, NULL);
    FN(soft)(c);
    return FL_OK;
}

static fl_err FN(cross_entropy2)(fl_call *c)
{
    return FN(hard)(c, fl_out(c, "MatchX")->data);
}

/* dx[label] = -dy / p in each row of n, where p is `match`, or else x[label].
 */
static fl_err FN(hard_grad)(fl_call *c, const REAL *x, const REAL *match)
{
    const int64_t *label = fl_in(c, "Label")->data;
    const REAL *dy = fl_in(c, "Y@GRAD")->data;
    fl_tensor *out = fl_out(c, "X@GRAD");
    REAL *dx = out->data;
    int64_t n = classes_of(out), ignore = fl_attr_i64(c, "ignore_index");
    FL_TRY(fl_label_check(c, "Label", n, ignore));
    memset(dx, 0, fl_tensor_bytes(out));
    for (int64_t i = 0, rows = fl_numel(c, "Label"); i < rows; i++) {
        int64_t at = i * n + label[i];
        if (label[i] != ignore)
            dx[at] = -dy[i] / (match ? match[i] : x[at]);
    }
    return FL_OK;
}

static fl_err FN(cross_entropy_grad)(fl_call *c)
{
    const fl_tensor *t = fl_in(c, "X");
    const REAL *x = t->data, *dy = fl_in(c, "Y@GRAD")->data;
    const REAL *label = fl_in(c, "Label")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    if (!fl_attr_bool(c, "soft_label"))
        return FN(hard_grad)(c, x, NULL);
    for (int64_t i = 0, size = fl_tensor_numel(t); i < size; i++)
        dx[i] = -dy[i / classes_of(t)] * label[i] / x[i];
    return FL_OK;
}

static fl_err FN(cross_entropy2_grad)(fl_call *c)
{
    return FN(hard_grad)(c, NULL, fl_in(c, "MatchX")->data);
}

#else

FL_REAL_KERNEL(cross_entropy)
FL_REAL_KERNEL(cross_entropy2)
FL_REAL_KERNEL(cross_entropy_grad)

/* The first input is the label, so the dtype comes from another one. */
static fl_err cross_entropy2_grad(fl_call *c)
{
    return fl_in(c, "MatchX")->dtype == FL_F64 ? cross_entropy2_grad_f64(c)
                                               : cross_entropy2_grad_f32(c);
}

/* Check X and Label; *y becomes the shape of Y. */
static fl_err loss_shape(const fl_infer *x, bool soft, fl_shape *y)
{
    const fl_shape *s = &fl_meta_in(x, "X", 0)->shape;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (s->rank < 2)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, expected 2 or more",
                       fl_meta_type(x), s->rank);
    FL_TRY(fl_meta_label(x, "X", "Label", s->rank - 1, soft));
    *y = fl_shape_single(s, s->rank - 1);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    fl_shape y;
    FL_TRY(loss_shape(x, fl_meta_attr(x, "soft_label")->b, &y));
    fl_meta_set(x, "Y", 0, fl_meta_in(x, "X", 0)->dtype, &y);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    fl_shape y;
    FL_TRY(loss_shape(x, fl_meta_attr(x, "soft_label")->b, &y));
    FL_TRY(fl_meta_expect(x, "Y@GRAD", m->dtype, &y));
    fl_meta_set(x, "X@GRAD", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "X", "X@GRAD");
    return FL_OK;
}

/* XShape is [0, X's dims]: a shape without elements. */
static fl_err infer2(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    fl_shape y, shape = {1, {0}};
    FL_TRY(loss_shape(x, false, &y));
    if (m->shape.rank == FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, at most %d",
                       fl_meta_type(x), m->shape.rank, FL_MAX_RANK - 1);
    for (int i = 0; i < m->shape.rank; i++)
        shape.dim[shape.rank++] = m->shape.dim[i];
    fl_meta_set(x, "Y", 0, m->dtype, &y);
    fl_meta_share_lod(x, "X", "Y");
    fl_meta_set(x, "XShape", 0, m->dtype, &shape);
    fl_meta_share_lod(x, "X", "XShape");
    fl_meta_set(x, "MatchX", 0, m->dtype, &y);
    return FL_OK;
}

static fl_err infer2_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "XShape", 0);
    FL_TRY(fl_meta_check(x, "XShape", FL_REALS));
    if (m->shape.rank < 3)
        return fl_fail(FL_ESHAPE, "%s: XShape has %d dims, expected 3 or more",
                       fl_meta_type(x), m->shape.rank);
    fl_shape dx = fl_shape_of(m->shape.rank - 1, m->shape.dim + 1);
    fl_shape y = fl_shape_single(&dx, dx.rank - 1);
    FL_TRY(fl_meta_expect(x, "Label", FL_I64, &y));
    FL_TRY(fl_meta_expect(x, "MatchX", m->dtype, &y));
    FL_TRY(fl_meta_expect(x, "Y@GRAD", m->dtype, &y));
    fl_meta_set(x, "X@GRAD", 0, m->dtype, &dx);
    fl_meta_share_lod(x, "XShape", "X@GRAD");
    return FL_OK;
}

const fl_op_def fl_op_cross_entropy = {
    .type = "cross_entropy",
    .in = {{"X"}, {"Label", FL_NOGRAD}},
    .out = {{"Y"}},
    .attr = {{"soft_label", FL_ATTR_BOOL},
             {"ignore_index", FL_ATTR_INT, .i = -100}},
    .infer = infer,
    .run = cross_entropy,
    .grad_in = {"X", "Label", "Y@GRAD"},
    .grad_run = cross_entropy_grad,
    .grad_infer = infer_grad,
};

const fl_op_def fl_op_cross_entropy2 = {
    .type = "cross_entropy2",
    .in = {{"X"}, {"Label", FL_NOGRAD}},
    .out = {{"Y"}, {"XShape", FL_INTERMEDIATE}, {"MatchX", FL_INTERMEDIATE}},
    .attr = {{"ignore_index", FL_ATTR_INT, .i = -100}},
    .infer = infer2,
    .run = cross_entropy2,
    .grad_in = {"Label", "MatchX", "XShape", "Y@GRAD"},
    .grad_run = cross_entropy2_grad,
    .grad_type = "cross_entropy_grad2",
    .grad_infer = infer2_grad,
};

#endif
