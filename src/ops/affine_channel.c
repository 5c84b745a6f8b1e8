/* SPDX-License-Identifier: Apache-2.0 */
/* affine_channel  Out = Scale * X + Bias, a number each for every channel
 * gradient        X@GRAD = Scale * Out@GRAD
 *                 Scale@GRAD = sum of X * Out@GRAD over the channel
 *                 Bias@GRAD  = sum of Out@GRAD over the channel */
#define FL_SELF "ops/affine_channel.c"
#include "op/real.h"

#ifndef FL_OPS_AFFINE_CHANNEL_C
#define FL_OPS_AFFINE_CHANNEL_C

#include <string.h>

static int channel_dim(const char *layout, int rank)
{
    return !strcmp(layout, "NHWC") ? rank - 1 : 1;
}

/* X as [outer, channels, inner]. */
static fl_fit fit_of(const fl_call *c)
{
    const fl_shape *s = &fl_in(c, "X")->shape;
    const int at = channel_dim(fl_attr_str(c, "data_layout"), s->rank);
    fl_fit f = {fl_shape_span(s, 0, at), s->dim[at],
                fl_shape_span(s, at + 1, s->rank)};
    if (!f.n || !f.post) /* a shape may have many rows and no elements */
        f.pre = 0;
    return f;
}

#endif
#ifdef REAL

static fl_err FN(affine_channel)(fl_call *c)
{
    const fl_fit f = fit_of(c);
    const REAL *x = fl_in(c, "X")->data;
    const REAL *scale = fl_in(c, "Scale")->data, *bias = fl_in(c, "Bias")->data;
    REAL *y = fl_out(c, "Out")->data;
    for (int64_t i = 0; i < f.pre * f.n; i++)
        for (int64_t j = i * f.post; j < (i + 1) * f.post; j++)
            y[j] = scale[i % f.n] * x[j] + bias[i % f.n];
    return FL_OK;
}

static fl_err FN(affine_channel_grad)(fl_call *c)
{
    const fl_fit f = fit_of(c);
    const REAL *x = fl_in(c, "X")->data, *scale = fl_in(c, "Scale")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    fl_tensor *by_scale = fl_out(c, "Scale@GRAD");
    fl_tensor *by_bias = fl_out(c, "Bias@GRAD");
    for (int64_t k = 0; k < f.n; k++) {
        double dot = 0, sum = 0;
        for (int64_t p = 0; p < f.pre; p++) {
            const int64_t at = (p * f.n + k) * f.post;
            dot += by_scale ? FN(fl_dot)(f.post, x + at, dy + at) : 0;
            sum += by_bias ? FN(fl_sum)(f.post, dy + at) : 0;
            for (int64_t j = at; dx && j < at + f.post; j++)
                ((REAL *)dx->data)[j] = scale[k] * dy[j];
        }
        if (by_scale)
            ((REAL *)by_scale->data)[k] = (REAL)dot;
        if (by_bias)
            ((REAL *)by_bias->data)[k] = (REAL)sum;
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(affine_channel)
FL_REAL_KERNEL(affine_channel_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const char *layout = fl_meta_attr(x, "data_layout")->s;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (in->shape.rank < 2 || !layout)
        return fl_fail(FL_ESHAPE, "%s: X is %s, which has no channels",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    const int at = channel_dim(layout, in->shape.rank);
    const fl_shape channels = {1, {in->shape.dim[at]}};
    FL_TRY(fl_meta_expect(x, "Scale", in->dtype, &channels));
    FL_TRY(fl_meta_expect(x, "Bias", in->dtype, &channels));
    return fl_infer_same(x);
}

const fl_op_def fl_op_affine_channel = {
    .type = "affine_channel",
    .in = {{"X"}, {"Scale"}, {"Bias"}},
    .out = {{"Out"}},
    .attr = {{"data_layout", FL_ATTR_STRING, .s = "AnyLayout"}},
    .infer = infer,
    .run = affine_channel,
    .grad_in = {"X", "Scale", "Bias", "Out@GRAD"},
    .grad_run = affine_channel_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
