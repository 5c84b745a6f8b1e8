/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d     Output = Input * Filter [+ Bias of each channel] [+ ResidualData]
 * gradient   Input@GRAD, Filter@GRAD as conv.h says; Bias@GRAD = Output@GRAD
 *            summed over images and places; ResidualData@GRAD = Output@GRAD
 *
 * depthwise_conv2d is the same with a group for each channel. */
#define FL_SELF "ops/conv2d.c"
#include "op/real.h"

#ifndef FL_OPS_CONV2D_C
#define FL_OPS_CONV2D_C

#include "ops/conv2d.h"

#include <string.h>

/* Set everything except the size of the output. */
static fl_conv geometry(const fl_shape *x, const fl_shape *w,
                        const fl_attr *groups, const fl_attr *list[3])
{
    fl_conv g = {
        .n = x->dim[0],
        .c = x->dim[1],
        .h = x->dim[2],
        .w = x->dim[3],
        .m = w->dim[0],
        .kh = w->dim[2],
        .kw = w->dim[3],
        .groups = groups->i,
    };
    for (int i = 0; i < 2; i++) {
        g.stride[i] = list[0]->longs[i];
        g.pad[i] = list[1]->longs[i];
        g.dilation[i] = list[2]->longs[i];
    }
    return g;
}

fl_conv fl_conv_of(const fl_call *c)
{
    return geometry(&fl_in(c, "Input")->shape, &fl_in(c, "Filter")->shape,
                    fl_attr_get(c, "groups"),
                    (const fl_attr *[]){fl_attr_get(c, "strides"),
                                        fl_attr_get(c, "paddings"),
                                        fl_attr_get(c, "dilations")});
}

static fl_conv conv_of(const fl_call *c, const fl_tensor *y)
{
    fl_conv g = fl_conv_of(c);
    g.oh = y->shape.dim[2];
    g.ow = y->shape.dim[3];
    return g;
}

#endif
#ifdef REAL

FL_CLONES static void FN(add_constant)(int64_t n, REAL by, REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += by;
}

static void FN(add_bias)(const fl_conv *g, const REAL *bias, REAL *y)
{
    int64_t places = g->oh * g->ow;
    for (int64_t i = 0; i < g->n * g->m; i++)
        FN(add_constant)(places, bias[i % g->m], y + i * places);
}

static void FN(sum_bias)(const fl_conv *g, const REAL *dy, REAL *db)
{
    int64_t places = g->oh * g->ow;
    for (int64_t k = 0; k < g->m; k++) {
        double sum = 0;
        for (int64_t i = 0; i < g->n; i++)
            sum += FN(fl_sum)(places, dy + (i * g->m + k) * places);
        db[k] = (REAL)sum;
    }
}

#else

static fl_err conv2d(fl_call *c)
{
    const fl_tensor *bias = fl_in(c, "Bias"), *more = fl_in(c, "ResidualData");
    const void *x = fl_in(c, "Input")->data, *w = fl_in(c, "Filter")->data;
    fl_tensor *y = fl_out(c, "Output");
    fl_conv g = conv_of(c, y);
    int64_t n = fl_tensor_numel(y);
    bool f64 = y->dtype == FL_F64;
    if (n && (f64 || !fl_conv_dnn(c, &g, x, w, y->data))) {
        void *columns = fl_conv_space(c, &g, y->dtype);
        if (!columns)
            return FL_ENOMEM;
        fl_conv_gemm(y->dtype, &g, x, w, columns, y->data);
    }
    if (bias && f64)
        add_bias_f64(&g, bias->data, y->data);
    else if (bias)
        add_bias_f32(&g, bias->data, y->data);
    if (more && f64)
        fl_add_f64(n, more->data, y->data);
    else if (more)
        fl_add_f32(n, more->data, y->data);
    return FL_OK;
}

static fl_err conv_grads(fl_call *c, const fl_conv *g, const fl_tensor *dy)
{
    const void *x = fl_in(c, "Input")->data, *w = fl_in(c, "Filter")->data;
    fl_tensor *dx = fl_out(c, "Input@GRAD"), *dw = fl_out(c, "Filter@GRAD");
    fl_conv_grads out = {dx ? dx->data : NULL, dw ? dw->data : NULL};
    if (!dx && !dw)
        return FL_OK;
    if (dy->dtype == FL_F32 && fl_tensor_numel(dy) &&
        fl_conv_dnn_grad(c, g, false, x, w, dy->data, out))
        return FL_OK;
    void *columns = fl_conv_space(c, g, dy->dtype);
    if (!columns)
        return FL_ENOMEM;
    fl_conv_gemm_grad(dy->dtype, g, x, w, dy->data, columns, out);
    return FL_OK;
}

static fl_err conv2d_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Output@GRAD");
    fl_tensor *db = fl_out(c, "Bias@GRAD");
    fl_tensor *more = fl_out(c, "ResidualData@GRAD");
    fl_conv g = conv_of(c, dy);
    FL_TRY(conv_grads(c, &g, dy));
    if (db && dy->dtype == FL_F64)
        sum_bias_f64(&g, dy->data, db->data);
    else if (db)
        sum_bias_f32(&g, dy->data, db->data);
    if (more && fl_tensor_bytes(dy))
        memcpy(more->data, dy->data, fl_tensor_bytes(dy));
    return FL_OK;
}

/* --- Shapes ------------------------------------------------------------ */

static fl_err check_list(const fl_infer *x, const char *name, int64_t least)
{
    const fl_attr *a = fl_meta_attr(x, name);
    if (a->n != 2)
        return fl_fail(FL_EINVAL, "%s: %s has %d numbers, expected 2",
                       fl_meta_type(x), name, a->n);
    for (int i = 0; i < 2; i++)
        if (a->longs[i] < least)
            return fl_fail(FL_EINVAL, "%s: %s has %lld, expected %lld or more",
                           fl_meta_type(x), name, (long long)a->longs[i],
                           (long long)least);
    return FL_OK;
}

static fl_err check_attrs(const fl_infer *x)
{
    const char *format = fl_meta_attr(x, "data_format")->s;
    FL_TRY(check_list(x, "strides", 1));
    FL_TRY(check_list(x, "paddings", 0));
    FL_TRY(check_list(x, "dilations", 1));
    if (format && strcmp(format, "NCHW") && strcmp(format, "AnyLayout"))
        return fl_fail(FL_EINVAL,
                       "%s: data_format is \"%s\", expected NCHW or AnyLayout",
                       fl_meta_type(x), format);
    return FL_OK;
}

static fl_err check_rank(const fl_infer *x, const char *slot)
{
    char text[FL_SHAPE_TEXT];
    const fl_shape *s = &fl_meta_in(x, slot, 0)->shape;
    FL_TRY(fl_meta_check(x, slot, FL_REALS));
    if (s->rank != 4)
        return fl_fail(FL_ESHAPE, "%s: %s is %s, expected 4 dims",
                       fl_meta_type(x), slot, fl_shape_text(s, text));
    return FL_OK;
}

static fl_err check_filter(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "Input", 0);
    const fl_meta *filter = fl_meta_in(x, "Filter", 0);
    const fl_shape *w = &filter->shape;
    int64_t groups = fl_meta_attr(x, "groups")->i, c = in->shape.dim[1];
    char text[FL_SHAPE_TEXT];
    if (filter->dtype != in->dtype)
        return fl_fail(FL_ESHAPE, "%s: Input is %s, Filter is %s",
                       fl_meta_type(x), fl_dtype_name(in->dtype),
                       fl_dtype_name(filter->dtype));
    for (int i = 0; i < 4; i++)
        if (w->dim[i] <= 0)
            return fl_fail(FL_ESHAPE,
                           "%s: Filter is %s, expected dims of 1 or more",
                           fl_meta_type(x), fl_shape_text(w, text));
    if (groups < 1 || w->dim[0] % groups)
        return fl_fail(
            FL_ESHAPE,
            "%s: Filter has %lld filters, groups is %lld, expected a divisor",
            fl_meta_type(x), (long long)w->dim[0], (long long)groups);
    const int64_t channels = fl_dim_mul(w->dim[1], groups);
    if (c != -1 && c != channels)
        return fl_fail(FL_ESHAPE,
                       "%s: Input has %lld channels, Filter %s with %lld "
                       "groups expects %lld",
                       fl_meta_type(x), (long long)c, fl_shape_text(w, text),
                       (long long)groups, (long long)channels);
    return FL_OK;
}

/* The number of positions of a filter with k elements along a dimension; -1 if
 * that is unknown. */
static int64_t places(int64_t dim, int64_t k, const fl_conv *g, int i)
{
    const int64_t size = fl_dim_add(fl_dim_mul(k - 1, g->dilation[i]), 1);
    const int64_t room = fl_dim_add(dim, 2 * g->pad[i]) - size;
    return dim == -1 ? -1 : room < 0 ? 0 : room / g->stride[i] + 1;
}

static fl_err infer_output(const fl_infer *x, fl_shape *out)
{
    const fl_shape *in = &fl_meta_in(x, "Input", 0)->shape;
    const fl_shape *w = &fl_meta_in(x, "Filter", 0)->shape;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    fl_conv g = geometry(in, w, fl_meta_attr(x, "groups"),
                         (const fl_attr *[]){fl_meta_attr(x, "strides"),
                                             fl_meta_attr(x, "paddings"),
                                             fl_meta_attr(x, "dilations")});
    *out = (fl_shape){
        4, {g.n, g.m, places(g.h, g.kh, &g, 0), places(g.w, g.kw, &g, 1)}};
    if (!out->dim[2] || !out->dim[3])
        return fl_fail(FL_ESHAPE,
                       "%s: Filter %s does not fit into Input %s with "
                       "paddings %lld and %lld",
                       fl_meta_type(x), fl_shape_text(w, t),
                       fl_shape_text(in, s), (long long)g.pad[0],
                       (long long)g.pad[1]);
    return FL_OK;
}

fl_err fl_conv_infer(const fl_infer *x, fl_shape *out)
{
    FL_TRY(check_rank(x, "Input"));
    FL_TRY(check_rank(x, "Filter"));
    FL_TRY(check_attrs(x));
    FL_TRY(check_filter(x));
    return infer_output(x, out);
}

static fl_err infer(fl_infer *x)
{
    const fl_dtype t = fl_meta_in(x, "Input", 0)->dtype;
    fl_shape out;
    FL_TRY(fl_conv_infer(x, &out));
    FL_TRY(fl_meta_expect(x, "Bias", t, &(fl_shape){1, {out.dim[1]}}));
    FL_TRY(fl_meta_expect(x, "ResidualData", t, &out));
    fl_meta_set(x, "Output", 0, t, &out);
    fl_meta_share_lod(x, "Input", "Output");
    return FL_OK;
}

#define FL_CONV2D(name)                                                        \
    {                                                                          \
        .type = name,                                                          \
        .in = {{"Input"},                                                      \
               {"Filter"},                                                     \
               {"Bias", FL_OPTIONAL | FL_GRAD_UNREAD},                         \
               {"ResidualData", FL_OPTIONAL | FL_GRAD_UNREAD}},                \
        .out = {{"Output"}},                                                   \
        .attr = {{"strides", FL_ATTR_INTS, .n = 2,                             \
                  .longs = (const int64_t[]){1, 1}},                           \
                 {"paddings", FL_ATTR_INTS, .n = 2,                            \
                  .longs = (const int64_t[]){0, 0}},                           \
                 {"groups", FL_ATTR_INT, .i = 1},                              \
                 {"dilations", FL_ATTR_INTS, .n = 2,                           \
                  .longs = (const int64_t[]){1, 1}},                           \
                 {"use_cudnn", FL_ATTR_BOOL},                                  \
                 {"use_mkldnn", FL_ATTR_BOOL},                                 \
                 {"fuse_relu_before_depthwise_conv", FL_ATTR_BOOL},            \
                 {"data_format", FL_ATTR_STRING, .s = "AnyLayout"}},           \
        .infer = infer, .run = conv2d,                                         \
        .grad_in = {"Input", "Filter", "Bias", "ResidualData", "Output@GRAD"}, \
        .grad_run = conv2d_grad, .grad_infer = fl_infer_grad_of_rule,          \
    }

const fl_op_def fl_op_conv2d = FL_CONV2D("conv2d");
const fl_op_def fl_op_depthwise_conv2d = FL_CONV2D("depthwise_conv2d");

#endif
