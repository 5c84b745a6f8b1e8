/* SPDX-License-Identifier: Apache-2.0 */
/* huber_loss  Residual = Y - X =: r
 *             Out      = r^2 / 2 where |r| <= delta, elsewhere
 *                        delta * (|r| - delta / 2)
 * gradient    Y@GRAD   = r, but within [-delta, delta], times Out@GRAD
 *             X@GRAD   = -Y@GRAD */
#define FL_SELF "ops/huber_loss.c"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(losses)(int64_t n, REAL delta, const REAL *x,
                                 const REAL *y, REAL *r, REAL *out)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        r[i] = y[i] - x[i];
        REAL a = RM(fabs)(r[i]);
        out[i] = a <= delta ? (REAL)0.5 * a * a : delta * (a - delta / 2);
    }
}

FL_CLONES static void FN(slopes)(int64_t n, REAL delta, REAL sign,
                                 const REAL *r, const REAL *dout, REAL *d)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL most = r[i] > delta ? delta : r[i];
        d[i] = sign * (most < -delta ? -delta : most) * dout[i];
    }
}

static fl_err FN(huber_loss)(fl_call *c)
{
    const REAL delta = fl_attr_f32(c, "delta");
    const REAL *x = fl_in(c, "X")->data, *y = fl_in(c, "Y")->data;
    REAL *r = fl_out(c, "Residual")->data, *out = fl_out(c, "Out")->data;
    FN(losses)(fl_numel(c, "X"), delta, x, y, r, out);
    return FL_OK;
}

static fl_err FN(huber_loss_grad)(fl_call *c)
{
    const REAL *r = fl_in(c, "Residual")->data;
    const REAL *dout = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD"), *dy = fl_out(c, "Y@GRAD");
    int64_t n = fl_numel(c, "Residual");
    if (dx)
        FN(slopes)(n, fl_attr_f32(c, "delta"), -1, r, dout, dx->data);
    if (dy)
        FN(slopes)(n, fl_attr_f32(c, "delta"), 1, r, dout, dy->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(huber_loss)
FL_REAL_KERNEL(huber_loss_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    FL_TRY(fl_infer_real(x));
    FL_TRY(fl_meta_expect(x, "Y", m->dtype, &m->shape));
    fl_meta_set(x, "Residual", 0, m->dtype, &m->shape);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Residual", 0);
    FL_TRY(fl_meta_check(x, "Residual", FL_REALS));
    FL_TRY(fl_meta_expect(x, "Out@GRAD", m->dtype, &m->shape));
    fl_meta_set(x, "X@GRAD", 0, m->dtype, &m->shape);
    fl_meta_set(x, "Y@GRAD", 0, m->dtype, &m->shape);
    return FL_OK;
}

const fl_op_def fl_op_huber_loss = {
    .type = "huber_loss",
    .in = {{"X"}, {"Y"}},
    .out = {{"Residual", FL_INTERMEDIATE}, {"Out"}},
    .attr = {{"delta", FL_ATTR_FLOAT, .required = true}},
    .infer = infer,
    .run = huber_loss,
    .grad_in = {"Residual", "Out@GRAD"},
    .grad_run = huber_loss_grad,
    .grad_infer = infer_grad,
};

#endif
