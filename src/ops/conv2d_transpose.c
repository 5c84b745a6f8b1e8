/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_transpose  Output = what a conv2d with this Filter would give back to
 *                   its input, if Input were its Output@GRAD:
 *                   [N,C,H,W], [C,M/groups,kh,kw] -> [N,M,OH,OW],
 *                   OH = (H-1) * stride - 2 * padding + dilation * (kh-1) + 1,
 *                   or what output_size says, less than a stride above
 * gradient          Input@GRAD = that conv2d of Output@GRAD
 *                   Filter@GRAD = its Filter@GRAD
 *
 * So fl_conv's input is our Output, and its output our Input. In
 * depthwise_conv2d_transpose each channel is a group. */
#include "kernel/conv.h"

static fl_conv geometry(const fl_shape *in, const fl_shape *w,
                        const fl_shape *out, int64_t groups,
                        const fl_attr *list[3])
{
    fl_conv g = {
        .n = in->dim[0],
        .c = out->dim[1],
        .h = out->dim[2],
        .w = out->dim[3],
        .m = in->dim[1],
        .kh = w->dim[2],
        .kw = w->dim[3],
        .oh = in->dim[2],
        .ow = in->dim[3],
        .groups = groups,
    };
    for (int i = 0; i < 2; i++) {
        g.stride[i] = list[0]->longs[i];
        g.pad[i] = list[1]->longs[i];
        g.dilation[i] = list[2]->longs[i];
    }
    return g;
}

static fl_conv conv_of(const fl_call *c, const fl_tensor *out)
{
    return geometry(&fl_in(c, "Input")->shape, &fl_in(c, "Filter")->shape,
                    &out->shape, fl_attr_i64(c, "groups"),
                    (const fl_attr *[]){fl_attr_get(c, "strides"),
                                        fl_attr_get(c, "paddings"),
                                        fl_attr_get(c, "dilations")});
}

static fl_err conv2d_transpose(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "Input"), *w = fl_in(c, "Filter");
    fl_tensor *y = fl_out(c, "Output");
    const fl_conv g = conv_of(c, y);
    const fl_conv_grads out = {y->data, NULL};
    if (!fl_tensor_numel(x))
        return FL_OK;
    if (x->dtype == FL_F32 &&
        fl_conv_dnn_grad(c, &g, false, NULL, w->data, x->data, out))
        return FL_OK;
    void *col = fl_conv_space(c, &g, x->dtype);
    if (!col)
        return FL_ENOMEM;
    fl_conv_gemm_grad(x->dtype, &g, NULL, w->data, x->data, col, out);
    return FL_OK;
}

/* The scratch of a frame holds the oneDNN objects of one kind of step; here
 * there are two. */
static fl_err conv2d_transpose_grad(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "Input"), *w = fl_in(c, "Filter");
    const fl_tensor *dy = fl_in(c, "Output@GRAD");
    fl_tensor *dx = fl_out(c, "Input@GRAD"), *dw = fl_out(c, "Filter@GRAD");
    const fl_conv g = conv_of(c, dy);
    void *col = fl_conv_space(c, &g, x->dtype);
    if (!col)
        return FL_ENOMEM;
    if (dx && fl_tensor_numel(dx))
        fl_conv_gemm(x->dtype, &g, dy->data, w->data, col, dx->data);
    if (dw)
        fl_conv_gemm_grad(x->dtype, &g, dy->data, w->data, x->data, col,
                          (fl_conv_grads){NULL, dw->data});
    return FL_OK;
}

/* --- Shapes ------------------------------------------------------------ */

static fl_err check_list(const fl_infer *x, const char *name, int64_t least)
{
    const fl_attr *a = fl_meta_attr(x, name);
    if (a->n != 2 || a->longs[0] < least || a->longs[1] < least)
        return fl_fail(FL_EINVAL, "%s: %s must be two numbers of %lld or more",
                       fl_meta_type(x), name, (long long)least);
    return FL_OK;
}

static fl_err check_inputs(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "Input", 0);
    const fl_meta *w = fl_meta_in(x, "Filter", 0);
    const int64_t groups = fl_meta_attr(x, "groups")->i;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "Input", FL_REALS));
    FL_TRY(fl_meta_check(x, "Filter", FL_REALS));
    FL_TRY(check_list(x, "strides", 1));
    FL_TRY(check_list(x, "paddings", 0));
    FL_TRY(check_list(x, "dilations", 1));
    bool fits = in->dtype == w->dtype && in->shape.rank == 4 &&
                w->shape.rank == 4 && groups >= 1;
    for (int i = 0; fits && i < 4; i++)
        fits = w->shape.dim[i] > 0;
    fits = fits && w->shape.dim[0] % groups == 0 &&
           (in->shape.dim[1] == w->shape.dim[0] || in->shape.dim[1] == -1);
    if (!fits)
        return fl_fail(FL_ESHAPE,
                       "%s: Input is %s%s, Filter %s%s with %lld groups, "
                       "expected [N,C,H,W], [C,M,h,w]",
                       fl_meta_type(x), fl_dtype_name(in->dtype),
                       fl_shape_text(&in->shape, s), fl_dtype_name(w->dtype),
                       fl_shape_text(&w->shape, t), (long long)groups);
    return FL_OK;
}

static fl_err out_dim(const fl_infer *x, int i, int64_t *out)
{
    const int64_t in = fl_meta_in(x, "Input", 0)->shape.dim[2 + i];
    const int64_t k = fl_meta_in(x, "Filter", 0)->shape.dim[2 + i];
    const int64_t stride = fl_meta_attr(x, "strides")->longs[i];
    const int64_t pad = fl_meta_attr(x, "paddings")->longs[i];
    const int64_t gap = fl_meta_attr(x, "dilations")->longs[i];
    const fl_attr *want = fl_meta_attr(x, "output_size");
    if (in > INT32_MAX ||
        k > INT32_MAX) /* products of these two do not overflow */
        return fl_fail(FL_ESHAPE,
                       "%s: dim %d is %lld of Input, %lld of Filter, expected "
                       "at most 2147483647",
                       fl_meta_type(x), 2 + i, (long long)in, (long long)k);
    const int64_t least = (in - 1) * stride - 2 * pad + gap * (k - 1) + 1;
    *out = want->n ? want->longs[i] : in < 0 ? -1 : least;
    if (in < 0)
        return FL_OK;
    if (least < 1 || *out < least || *out >= least + stride)
        return fl_fail(FL_ESHAPE,
                       "%s: Output would have %lld along dim %d, expected 1 or "
                       "more, from %lld up to %lld",
                       fl_meta_type(x), (long long)*out, 2 + i,
                       (long long)least, (long long)(least + stride - 1));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "Input", 0);
    FL_TRY(check_inputs(x));
    const fl_attr *want = fl_meta_attr(x, "output_size");
    if (want->n && want->n != 2)
        return fl_fail(FL_EINVAL, "%s: output_size has %d numbers, expected 2",
                       fl_meta_type(x), want->n);
    fl_shape s = {
        4,
        {in->shape.dim[0], fl_dim_mul(fl_meta_in(x, "Filter", 0)->shape.dim[1],
                                      fl_meta_attr(x, "groups")->i)}};
    FL_TRY(out_dim(x, 0, &s.dim[2]));
    FL_TRY(out_dim(x, 1, &s.dim[3]));
    fl_meta_set(x, "Output", 0, in->dtype, &s);
    return FL_OK;
}

#define TRANSPOSED(name)                                                       \
    {                                                                          \
        .type = name, .in = {{"Input"}, {"Filter"}}, .out = {{"Output"}},      \
        .attr = {{"output_size", FL_ATTR_INTS},                                \
                 {"groups", FL_ATTR_INT, .i = 1},                              \
                 {"dilations", FL_ATTR_INTS, .n = 2,                           \
                  .longs = (const int64_t[]){1, 1}},                           \
                 {"strides", FL_ATTR_INTS, .n = 2,                             \
                  .longs = (const int64_t[]){1, 1}},                           \
                 {"paddings", FL_ATTR_INTS, .n = 2,                            \
                  .longs = (const int64_t[]){0, 0}},                           \
                 {"use_cudnn", FL_ATTR_BOOL}},                                 \
        .infer = infer, .run = conv2d_transpose,                               \
        .grad_in = {"Input", "Filter", "Output@GRAD"},                         \
        .grad_run = conv2d_transpose_grad,                                     \
        .grad_infer = fl_infer_grad_of_rule,                                   \
    }

const fl_op_def fl_op_conv2d_transpose = TRANSPOSED("conv2d_transpose");
const fl_op_def fl_op_depthwise_conv2d_transpose =
    TRANSPOSED("depthwise_conv2d_transpose");
