/* SPDX-License-Identifier: Apache-2.0 */
/* fused_conv - a convolution, its bias, relu and a pool; the planner makes it.
 *
 * fused_conv_pool       Input, Filter, Bias [m] -> Out, Conv
 *     Conv [n,oh,ow,m] = relu(Input * Filter + Bias), its channels last
 *     Out [n,m,ph,pw] = the largest of each window of Conv; windows of `ksize`
 *     lie side by side, and what is left over at the end is in none
 *
 * fused_conv_pool_grad  Input, Filter, Conv, Out@GRAD
 *                           -> Conv@GRAD, Input@GRAD?, Filter@GRAD?, Bias@GRAD?
 *     Conv@GRAD is Out@GRAD at the first largest element of each window, if
 *     that is above zero, and zero elsewhere
 *
 * oneDNN's convolutions want channels last, and so do windows: many channels
 * are compared at once. Nothing but Input and the small Out is turned. */
#include "base/clones.h"
#include "op/lanes.h"
#include "ops/conv2d.h"

#include <string.h>

enum {
    CHANNELS =
        8, /* channels that are compared at once; there are at least as many */
};

/* The pool: windows of [wh, ww], in ph rows of pw. */
typedef struct windows {
    int64_t wh, ww, ph, pw;
} windows;

static windows windows_of(const fl_call *c, const fl_conv *g)
{
    const int64_t *size = fl_attr_get(c, "ksize")->longs;
    return (windows){size[0], size[1], g->oh / size[0], g->ow / size[1]};
}

static fl_conv conv_of(const fl_call *c, const fl_tensor *conv)
{
    fl_conv g = fl_conv_of(c);
    g.oh = conv->shape.dim[1];
    g.ow = conv->shape.dim[2];
    return g;
}

/* --- channels last and first --- */

/* Memory for the columns, followed by an Output in our own order. */
static float *own_order(fl_call *c, const fl_conv *g, float **y)
{
    const int64_t columns = g->c / g->groups * g->kh * g->kw * g->oh * g->ow;
    const int64_t n = g->n * g->m * g->oh * g->ow;
    float *at = fl_workspace_get(c, (size_t)(columns + n) * sizeof *at);
    *y = at ? at + columns : NULL;
    return at;
}

/* Used if oneDNN has no fast implementation. */
static fl_err forward_by_columns(fl_call *c, const fl_conv *g,
                                 const float *bias, float *conv)
{
    const int64_t places = g->oh * g->ow;
    float *y, *columns = own_order(c, g, &y);
    if (!columns)
        return FL_ENOMEM;
    fl_conv_gemm(FL_F32, g, fl_in(c, "Input")->data, fl_in(c, "Filter")->data,
                 columns, y);
    for (int64_t i = 0; i < g->n; i++)
        fl_turn_f32(g->m, places, y + i * g->m * places,
                    conv + i * g->m * places);
    for (int64_t i = 0; i < g->n * places; i++)
        for (int64_t k = 0; k < g->m; k++) {
            const float v = conv[i * g->m + k] + bias[k];
            conv[i * g->m + k] = v > 0 ? v : 0;
        }
    return FL_OK;
}

static fl_err grads_by_columns(fl_call *c, const fl_conv *g, const float *dconv,
                               fl_conv_grads out)
{
    const int64_t places = g->oh * g->ow;
    float *dy, *columns = own_order(c, g, &dy);
    if (!columns)
        return FL_ENOMEM;
    for (int64_t i = 0; i < g->n; i++)
        fl_turn_f32(places, g->m, dconv + i * g->m * places,
                    dy + i * g->m * places);
    fl_conv_gemm_grad(FL_F32, g, fl_in(c, "Input")->data,
                      fl_in(c, "Filter")->data, dy, columns, out);
    return FL_OK;
}

/* --- windows --- */

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(CHANNELS * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(CHANNELS * sizeof(float))));

/* Vectors are passed by address, because the calling convention for values
 * depends on the processor. */
INLINE void load(const float *x, vec *v)
{
    memcpy(v, x, sizeof *v);
}

/* Elements of `a` where m is set, and of `b` elsewhere. */
#define CHOOSE(m, a, b) ((vec)(((mask)(a) & (m)) | ((mask)(b) & ~(m))))

/* The largest elements of the window at x; `row` is the distance of two rows of
 * Conv. */
INLINE void max_window(windows w, int64_t m, int64_t row, const float *x,
                       vec *top)
{
    load(x, top);
    for (int64_t i = 0; i < w.wh; i++)
        for (int64_t j = 0; j < w.ww; j++) {
            vec v;
            load(x + i * row + j * m, &v);
            *top = CHOOSE(v > *top, v, *top);
        }
}

/* Pass the gradient d of the largest elements to the first element that equals
 * it, but not where relu gave zero; those elements of d become zero. */
INLINE void spread_window(windows w, int64_t m, int64_t row, const float *x,
                          vec *d, float *dx)
{
    const vec zero = {0};
    vec top, left, v;
    max_window(w, m, row, x, &top);
    left = *d = (vec)((mask)*d & (top > zero));
    for (int64_t i = 0; i < w.wh; i++)
        for (int64_t j = 0; j < w.ww; j++) {
            const int64_t at = i * row + j * m;
            load(x + at, &v);
            const mask hit = v == top;
            v = (vec)((mask)left & hit);
            memcpy(dx + at, &v, sizeof v);
            left = (vec)((mask)left & ~hit);
        }
}

/* One image: `to`, [ph,pw,m], gets the largest elements. With dx, the gradients
 * d are written to dx, and `to` gets those that were passed on. The last
 * channels may be computed twice. */
INLINE void each_window(windows w, int64_t m, int64_t row, const float *x,
                        const float *d, float *to, float *dx)
{
    for (int64_t p = 0; p < w.ph * w.pw; p++) {
        const int64_t at = p / w.pw * w.wh * row + p % w.pw * w.ww * m;
        for (int64_t i = 0; i < m; i += CHANNELS) {
            const int64_t k = i < m - CHANNELS ? i : m - CHANNELS;
            vec v;
            if (dx) {
                load(d + p * m + k, &v);
                spread_window(w, m, row, x + at + k, &v, dx + at + k);
            } else {
                max_window(w, m, row, x + at + k, &v);
            }
            memcpy(to + p * m + k, &v, sizeof v);
        }
    }
}

/* With the most common size there is no loop around the vectors. */
FL_CLONES static void max_image(windows w, int64_t m, int64_t row,
                                const float *x, float *to)
{
    if (w.wh == 2 && w.ww == 2)
        each_window((windows){2, 2, w.ph, w.pw}, m, row, x, NULL, to, NULL);
    else
        each_window(w, m, row, x, NULL, to, NULL);
}

FL_CLONES static void spread_image(windows w, int64_t m, int64_t row,
                                   const float *x, const float *d, float *to,
                                   float *dx)
{
    if (w.wh == 2 && w.ww == 2)
        each_window((windows){2, 2, w.ph, w.pw}, m, row, x, d, to, dx);
    else
        each_window(w, m, row, x, d, to, dx);
}

/* space is [ph,pw,m]. */
static void pool_image(windows w, const fl_conv *g, const float *x,
                       float *space, float *y)
{
    max_image(w, g->m, g->ow * g->m, x, space);
    fl_turn_f32(w.ph * w.pw, g->m, space, y);
}

/* space is twice [ph,pw,m]. */
static void unpool_image(windows w, const fl_conv *g, const float *x,
                         const float *dy, float *space, float *dx, double *sum)
{
    const int64_t places = w.ph * w.pw;
    float *went = space + places * g->m;
    fl_turn_f32(g->m, places, dy, space);
    if (g->oh % w.wh || g->ow % w.ww)
        memset(dx, 0, (size_t)(g->oh * g->ow * g->m) * sizeof *dx);
    spread_image(w, g->m, g->ow * g->m, x, space, went, dx);
    for (int64_t p = 0; p < places; p++)
        fl_add_wide_f32(g->m, went + p * g->m, sum);
}

/* --- operators --- */

/* The pool of one image. */
static size_t image_bytes(const windows *w, const fl_conv *g)
{
    return (size_t)(w->ph * w->pw * g->m) * sizeof(float);
}

static fl_err fused_conv_pool(fl_call *c)
{
    const float *bias = fl_in(c, "Bias")->data;
    fl_tensor *conv = fl_out(c, "Conv"), *out = fl_out(c, "Out");
    const fl_conv g = conv_of(c, conv);
    const windows w = windows_of(c, &g);
    if (!fl_tensor_numel(conv))
        return FL_OK;
    if (!fl_conv_dnn_relu(c, &g, fl_in(c, "Input")->data,
                          fl_in(c, "Filter")->data, bias, conv->data))
        FL_TRY(forward_by_columns(c, &g, bias, conv->data));
    float *space = fl_workspace_get(c, image_bytes(&w, &g));
    if (!space)
        return FL_ENOMEM;
    for (int64_t i = 0; i < g.n; i++)
        pool_image(w, &g, (const float *)conv->data + i * g.oh * g.ow * g.m,
                   space, (float *)out->data + i * g.m * w.ph * w.pw);
    return FL_OK;
}

static fl_err grads_of_conv(fl_call *c, const fl_conv *g, const float *dconv)
{
    fl_tensor *dx = fl_out(c, "Input@GRAD"), *dw = fl_out(c, "Filter@GRAD");
    const fl_conv_grads out = {dx ? dx->data : NULL, dw ? dw->data : NULL};
    if (g->n && fl_conv_last_pays(g))
        return fl_conv_last_grad(c, g, fl_in(c, "Input")->data,
                                 fl_in(c, "Filter")->data, dconv, out);
    if ((!dx && !dw) ||
        (g->n && fl_conv_dnn_grad(c, g, true, fl_in(c, "Input")->data,
                                  fl_in(c, "Filter")->data, dconv, out)))
        return FL_OK;
    return grads_by_columns(c, g, dconv, out);
}

static fl_err fused_conv_pool_grad(fl_call *c)
{
    const fl_tensor *conv = fl_in(c, "Conv"), *dout = fl_in(c, "Out@GRAD");
    fl_tensor *dconv = fl_out(c, "Conv@GRAD"), *db = fl_out(c, "Bias@GRAD");
    const fl_conv g = conv_of(c, conv);
    const windows w = windows_of(c, &g);
    const size_t bytes = (size_t)g.m * sizeof(double) + 2 * image_bytes(&w, &g);
    double *sum = fl_workspace_get(c, bytes);
    if (!sum)
        return FL_ENOMEM;
    float *space = (float *)(sum + g.m);
    memset(sum, 0, (size_t)g.m * sizeof *sum);
    for (int64_t i = 0; i < g.n; i++)
        unpool_image(w, &g, (const float *)conv->data + i * g.oh * g.ow * g.m,
                     (const float *)dout->data + i * g.m * w.ph * w.pw, space,
                     (float *)dconv->data + i * g.oh * g.ow * g.m, sum);
    for (int64_t k = 0; db && k < g.m; k++)
        ((float *)db->data)[k] = (float)sum[k];
    return grads_of_conv(c, &g, dconv->data);
}

/* --- shapes --- */

/* Conv and Out; only f32 is fused. */
static fl_err infer_both(const fl_infer *x, fl_shape *conv, fl_shape *out)
{
    const fl_attr *size = fl_meta_attr(x, "ksize");
    fl_shape y;
    FL_TRY(fl_meta_check(x, "Input", FL_SET(FL_F32)));
    FL_TRY(fl_conv_infer(x, &y));
    if (size->n != 2 || size->longs[0] < 1 || size->longs[1] < 1)
        return fl_fail(FL_EINVAL, "%s: ksize is not two numbers from 1 on",
                       fl_meta_type(x));
    *conv = (fl_shape){4, {y.dim[0], y.dim[2], y.dim[3], y.dim[1]}};
    *out = y;
    for (int i = 0; i < 2; i++)
        out->dim[2 + i] = y.dim[2 + i] < 0 ? -1 : y.dim[2 + i] / size->longs[i];
    if (!out->dim[2] || !out->dim[3] || y.dim[1] < CHANNELS)
        return fl_fail(FL_ESHAPE,
                       "%s: there is no window, or there are fewer than %d "
                       "channels",
                       fl_meta_type(x), CHANNELS);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    fl_shape conv, out;
    FL_TRY(infer_both(x, &conv, &out));
    FL_TRY(fl_meta_expect(x, "Bias", FL_F32, &(fl_shape){1, {out.dim[1]}}));
    fl_meta_set(x, "Out", 0, FL_F32, &out);
    fl_meta_set(x, "Conv", 0, FL_F32, &conv);
    fl_meta_share_lod(x, "Input", "Out");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    fl_shape conv, out;
    FL_TRY(infer_both(x, &conv, &out));
    FL_TRY(fl_meta_expect(x, "Conv", FL_F32, &conv));
    FL_TRY(fl_meta_expect(x, "Out@GRAD", FL_F32, &out));
    fl_meta_set(x, "Conv@GRAD", 0, FL_F32, &conv);
    fl_meta_set(x, "Input@GRAD", 0, FL_F32, &fl_meta_in(x, "Input", 0)->shape);
    fl_meta_set(x, "Filter@GRAD", 0, FL_F32,
                &fl_meta_in(x, "Filter", 0)->shape);
    fl_meta_set(x, "Bias@GRAD", 0, FL_F32, &(fl_shape){1, {out.dim[1]}});
    return FL_OK;
}

/* The attributes of conv2d that have an effect, and those of the pool. */
#define FL_CONV_POOL_ATTRS                                                     \
    {                                                                          \
        {"strides", FL_ATTR_INTS, .n = 2, .longs = (const int64_t[]){1, 1}},   \
            {"paddings", FL_ATTR_INTS, .n = 2,                                 \
             .longs = (const int64_t[]){0, 0}},                                \
            {"groups", FL_ATTR_INT, .i = 1},                                   \
            {"dilations", FL_ATTR_INTS, .n = 2,                                \
             .longs = (const int64_t[]){1, 1}},                                \
            {"data_format", FL_ATTR_STRING, .s = "AnyLayout"},                 \
            {"ksize", FL_ATTR_INTS, .n = 2, .longs = (const int64_t[]){1, 1}}, \
    }

const fl_op_def fl_op_fused_conv_pool = {
    .type = "fused_conv_pool",
    .in = {{"Input"}, {"Filter"}, {"Bias"}},
    .out = {{"Out"}, {"Conv"}},
    .attr = FL_CONV_POOL_ATTRS,
    .flags = FL_OP_HIDDEN,
    .infer = infer,
    .run = fused_conv_pool,
};

const fl_op_def fl_op_fused_conv_pool_grad = {
    .type = "fused_conv_pool_grad",
    .in = {{"Input"}, {"Filter"}, {"Conv"}, {"Out@GRAD"}},
    .out = {{"Conv@GRAD"},
            {"Input@GRAD", FL_OPTIONAL},
            {"Filter@GRAD", FL_OPTIONAL},
            {"Bias@GRAD", FL_OPTIONAL}},
    .attr = FL_CONV_POOL_ATTRS,
    .flags = FL_OP_HIDDEN,
    .infer = infer_grad,
    .run = fused_conv_pool_grad,
};
