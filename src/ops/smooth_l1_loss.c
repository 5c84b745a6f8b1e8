/* SPDX-License-Identifier: Apache-2.0 */
/* smooth_l1_loss  Diff   = (X - Y) * InsideWeight =: d
 *                 Out    = sum over a row of OutsideWeight *
 *                          (s * d^2 / 2 where |d| < 1 / s, else
 *                          |d| - 1 / (2 s)), s = sigma^2; shape [rows, 1]
 * gradient        X@GRAD = Out@GRAD * InsideWeight * OutsideWeight *
 *                          (s * d where |d| < 1 / s, else the sign of d)
 *                 Y@GRAD = -X@GRAD
 *
 * A weight that is absent is 1. */
#define FL_SELF "ops/smooth_l1_loss.c"
#include "op/real.h"

#ifndef FL_OPS_SMOOTH_L1_LOSS_C
#define FL_OPS_SMOOTH_L1_LOSS_C

static const void *weight(const fl_call *c, const char *slot)
{
    const fl_tensor *t = fl_in(c, slot);
    return t ? t->data : NULL;
}

#endif
#ifdef REAL

static fl_err FN(smooth_l1_loss)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *y = fl_in(c, "Y")->data;
    const REAL *in = weight(c, "InsideWeight"),
               *ex = weight(c, "OutsideWeight");
    REAL *diff = fl_out(c, "Diff")->data, *out = fl_out(c, "Out")->data;
    const REAL s = (REAL)fl_attr_f32(c, "sigma") * fl_attr_f32(c, "sigma");
    int64_t rows = fl_tensor_numel(fl_out(c, "Out"));
    int64_t width = rows ? fl_numel(c, "X") / rows : 0;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            REAL d = (x[i] - y[i]) * (in ? in[i] : 1), a = RM(fabs)(d);
            REAL loss = a < 1 / s ? s * a * a / 2 : a - 1 / (2 * s);
            diff[i] = d;
            sum += loss * (ex ? ex[i] : 1);
        }
        out[r] = (REAL)sum;
    }
    return FL_OK;
}

static REAL FN(slope)(REAL s, REAL d)
{
    if (RM(fabs)(d) < 1 / s)
        return s * d;
    return d > 0 ? 1 : -1;
}

static fl_err FN(smooth_l1_loss_grad)(fl_call *c)
{
    const REAL *diff = fl_in(c, "Diff")->data;
    const REAL *in = weight(c, "InsideWeight"),
               *ex = weight(c, "OutsideWeight");
    const REAL *dout = fl_in(c, "Out@GRAD")->data;
    fl_tensor *tx = fl_out(c, "X@GRAD"), *ty = fl_out(c, "Y@GRAD");
    REAL *dx = tx ? tx->data : NULL, *dy = ty ? ty->data : NULL;
    const REAL s = (REAL)fl_attr_f32(c, "sigma") * fl_attr_f32(c, "sigma");
    int64_t rows = fl_numel(c, "Out@GRAD");
    int64_t width = rows ? fl_numel(c, "Diff") / rows : 0;
    for (int64_t i = 0; i < rows * width; i++) {
        REAL d = dout[i / width] * FN(slope)(s, diff[i]);
        d *= (in ? in[i] : 1) * (ex ? ex[i] : 1);
        if (dx)
            dx[i] = d;
        if (dy)
            dy[i] = -d;
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(smooth_l1_loss)

/* The first inputs may be absent, so the dtype comes from another one. */
static fl_err smooth_l1_loss_grad(fl_call *c)
{
    return fl_in(c, "Diff")->dtype == FL_F64 ? smooth_l1_loss_grad_f64(c)
                                             : smooth_l1_loss_grad_f32(c);
}

/* Check that the weights fit `like`; *out becomes the shape of Out. */
static fl_err loss_shape(const fl_infer *x, const char *like, fl_shape *out)
{
    const fl_meta *m = fl_meta_in(x, like, 0);
    FL_TRY(fl_meta_check(x, like, FL_REALS));
    if (m->shape.rank < 2)
        return fl_fail(FL_ESHAPE, "%s: %s has %d dims, expected 2 or more",
                       fl_meta_type(x), like, m->shape.rank);
    FL_TRY(fl_meta_expect(x, "InsideWeight", m->dtype, &m->shape));
    FL_TRY(fl_meta_expect(x, "OutsideWeight", m->dtype, &m->shape));
    *out = (fl_shape){2, {m->shape.dim[0], 1}};
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    fl_shape out;
    FL_TRY(loss_shape(x, "X", &out));
    FL_TRY(fl_meta_expect(x, "Y", m->dtype, &m->shape));
    fl_meta_set(x, "Diff", 0, m->dtype, &m->shape);
    fl_meta_set(x, "Out", 0, m->dtype, &out);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Diff", 0);
    fl_shape out;
    FL_TRY(loss_shape(x, "Diff", &out));
    FL_TRY(fl_meta_expect(x, "Out@GRAD", m->dtype, &out));
    fl_meta_set(x, "X@GRAD", 0, m->dtype, &m->shape);
    fl_meta_set(x, "Y@GRAD", 0, m->dtype, &m->shape);
    return FL_OK;
}

const fl_op_def fl_op_smooth_l1_loss = {
    .type = "smooth_l1_loss",
    .in = {{"X"},
           {"Y"},
           {"InsideWeight", FL_OPTIONAL | FL_NOGRAD},
           {"OutsideWeight", FL_OPTIONAL | FL_NOGRAD}},
    .out = {{"Diff", FL_INTERMEDIATE}, {"Out"}},
    .attr = {{"sigma", FL_ATTR_FLOAT, .f = 1}},
    .infer = infer,
    .run = smooth_l1_loss,
    .grad_in = {"InsideWeight", "OutsideWeight", "Diff", "Out@GRAD"},
    .grad_run = smooth_l1_loss_grad,
    .grad_infer = infer_grad,
};

#endif
