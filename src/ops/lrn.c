/* SPDX-License-Identifier: Apache-2.0 */
/* lrn       MidOut = k + alpha * sum of X^2 over the n channels around
 *           Out    = X * MidOut^-beta
 * gradient  X@GRAD = Out@GRAD * MidOut^-beta - 2 * alpha * beta * X *
 *                    sum of Out@GRAD * Out / MidOut over the channels that
 *                    have this one around them: n is odd, so the same ones */
#define FL_SELF "ops/lrn.c"
#include "op/real.h"

#ifndef FL_OPS_LRN_C
#define FL_OPS_LRN_C

#include "op/vecmath.h"

#include <string.h>

/* Images of `c` planes of `plane` elements. */
typedef struct images {
    int64_t n, c, plane;
} images;

static images images_of(const fl_tensor *x)
{
    const fl_shape *s = &x->shape;
    return (images){s->dim[0], s->dim[1], s->dim[2] * s->dim[3]};
}

/* The number of channels on either side; more than all channels are never
 * needed. */
static int64_t reach_of(const fl_call *c, const images *at)
{
    int64_t reach = (fl_attr_i64(c, "n") - 1) / 2;
    return reach < at->c ? reach : at->c;
}

#endif
#ifdef REAL

FL_CLONES static void FN(add_square)(int64_t n, REAL alpha, const REAL *x,
                                     REAL *mid)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        mid[i] += alpha * x[i] * x[i];
}

/* y = x * mid^-beta */
FL_CLONES static void FN(times_power)(int64_t n, REAL beta, const REAL *mid,
                                      const REAL *x, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * FN(fl_exp)(-beta * FN(fl_log)(mid[i]));
}

/* dx -= by * x * dy * y / mid; the last three are those of another channel. */
FL_CLONES static void FN(take_share)(int64_t n, REAL by, const REAL *x,
                                     const REAL *dy, const REAL *y,
                                     const REAL *mid, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dx[i] -= by * x[i] * (dy[i] * y[i] / mid[i]);
}

static fl_err FN(lrn)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data;
    REAL *y = fl_out(c, "Out")->data, *mid = fl_out(c, "MidOut")->data;
    const REAL alpha = fl_attr_f32(c, "alpha"), k = fl_attr_f32(c, "k");
    images at = images_of(fl_in(c, "X"));
    const int64_t reach = reach_of(c, &at);
    int64_t size = at.c * at.plane;
    for (int64_t i = 0; i < at.n * size; i++)
        mid[i] = k;
    for (int64_t i = 0; i < at.n; i++)
        for (int64_t j = 0; j < at.c; j++)
            for (int64_t o = j - reach; o <= j + reach; o++)
                if (o >= 0 && o < at.c)
                    FN(add_square)
    (at.plane, alpha, x + i * size + o * at.plane,
     mid + i * size + j * at.plane);
    FN(times_power)(at.n * size, fl_attr_f32(c, "beta"), mid, x, y);
    return FL_OK;
}

static fl_err FN(lrn_grad)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *y = fl_in(c, "Out")->data;
    const REAL *mid = fl_in(c, "MidOut")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    const REAL beta = fl_attr_f32(c, "beta");
    const REAL by = 2 * (REAL)fl_attr_f32(c, "alpha") * beta;
    images at = images_of(fl_in(c, "X"));
    const int64_t reach = reach_of(c, &at);
    FN(times_power)(at.n * at.c * at.plane, beta, mid, dy, dx);
    for (int64_t i = 0; i < at.n * at.c; i++)
        for (int64_t d = -reach; d <= reach; d++) {
            int64_t j = i % at.c + d, k = i * at.plane;
            int64_t other = k + d * at.plane;
            if (j >= 0 && j < at.c)
                FN(take_share)
            (at.plane, by, x + k, dy + other, y + other, mid + other, dx + k);
        }
    return FL_OK;
}

#else

FL_REAL_KERNEL(lrn)
FL_REAL_KERNEL(lrn_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    int64_t n = fl_meta_attr(x, "n")->i;
    char text[FL_SHAPE_TEXT];
    if (n < 1 || n % 2 == 0)
        return fl_fail(FL_EINVAL, "%s: n is %lld, expected odd and positive",
                       fl_meta_type(x), (long long)n);
    if (in->shape.rank != 4)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected 4 dims",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    fl_meta_set(x, "MidOut", 0, in->dtype, &in->shape);
    return fl_infer_real(x);
}

static fl_err infer_grad(fl_infer *x)
{
    FL_TRY(fl_infer_grad_of_rule(x));
    FL_TRY(fl_meta_alike(x, "X", "Out"));
    return fl_meta_alike(x, "X", "MidOut");
}

const fl_op_def fl_op_lrn = {
    .type = "lrn",
    .in = {{"X"}},
    .out = {{"Out"}, {"MidOut", FL_INTERMEDIATE}},
    .attr =
        {
            {"n", FL_ATTR_INT, .i = 5},
            {"k", FL_ATTR_FLOAT, .f = 2},
            {"alpha", FL_ATTR_FLOAT, .f = 0.0001f},
            {"beta", FL_ATTR_FLOAT, .f = 0.75f},
            {"use_mkldnn", FL_ATTR_BOOL},
            {"is_test", FL_ATTR_BOOL},
        },
    .infer = infer,
    .run = lrn,
    .grad_in = {"X", "Out", "MidOut", "Out@GRAD"},
    .grad_run = lrn_grad,
    .grad_infer = infer_grad,
};

#endif
