/* SPDX-License-Identifier: Apache-2.0 */
/* layers_image.c - convolutions, pools, and the layers that normalise. */
#include "build/layer.h"

#include <math.h>

static fl_err set_pair(const fl_emit *e, fl_desc *d, const char *attr,
                       const char *name)
{
    int64_t v[2] = {0};
    FL_TRY(fl_emit_pair(e, name, v));
    fl_set_ints(d, attr, 2, v);
    return FL_OK;
}

static const fl_param_attr *param_attr(const fl_emit *e, const char *name)
{
    const fl_arg *a = fl_arg_get(&e->args, name);
    return a ? a->attr : NULL;
}

/* --- conv2d --- */

/* The shape is [filters, channels of a group, height, width]. Initial values
 * are near 0, and the smaller the more terms an output sums. */
static fl_err add_filter(fl_emit *e, int64_t channels, int64_t groups,
                         fl_var **out)
{
    const fl_var *x = fl_arg_var(&e->args, "input");
    const int64_t filters = fl_arg_int(&e->args, "num_filters");
    int64_t size[2] = {0};
    FL_TRY(fl_emit_pair(e, "filter_size", size));
    if (groups < 1 || channels % groups)
        return fl_fail(FL_EINVAL,
                       "conv2d: input \"%s\" has %lld channels, groups is "
                       "%lld, expected a divisor",
                       x->name, (long long)channels, (long long)groups);
    const fl_shape shape = {4, {filters, channels / groups, size[0], size[1]}};
    const double terms = (double)(size[0] * size[1] * channels);
    const fl_init init = {.kind = "normal", .b = sqrt(2.0 / terms)};
    return fl_net_param(e->net, param_attr(e, "param_attr"), e->name, false,
                        x->dtype, &shape, &init, out);
}

static fl_err conv2d(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *w = NULL, *out = NULL;
    const bool cudnn = fl_arg_bool(&e->args, "use_cudnn");
    char text[FL_SHAPE_TEXT];
    if (x->shape.rank != 4 || x->shape.dim[1] < 1)
        return fl_fail(FL_ESHAPE,
                       "conv2d: input \"%s\" is %s, expected 4 dims, the "
                       "second known",
                       x->name, fl_shape_text(&x->shape, text));
    const int64_t channels = x->shape.dim[1];
    const int64_t groups =
        fl_arg_given(&e->args, "groups") ? fl_arg_int(&e->args, "groups") : 1;
    const bool each = channels == groups && !cudnn &&
                      fl_arg_int(&e->args, "num_filters") % channels == 0;
    fl_desc *d = fl_net_desc(e->net, each ? "depthwise_conv2d" : "conv2d");
    if (!e->name)
        e->name = fl_names_generate(e->net->names, e->net->arena, d->type);
    FL_TRY(add_filter(e, channels, groups, &w));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_set_in(d, "Input", x);
    fl_set_in(d, "Filter", w);
    fl_set_out(d, "Output", out);
    FL_TRY(set_pair(e, d, "strides", "stride"));
    FL_TRY(set_pair(e, d, "paddings", "padding"));
    FL_TRY(set_pair(e, d, "dilations", "dilation"));
    fl_set_int(d, "groups", groups);
    fl_set_bool(d, "use_cudnn", cudnn);
    fl_set_bool(d, "use_mkldnn", false);
    fl_set_bool(d, "fuse_relu_before_depthwise_conv", false);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_bias(e, 1, 2, &out));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- conv2d_transpose --- */

/* The filter size; if it is not given, the size that results in output_size. */
static fl_err transposed_size(fl_emit *e, const fl_var *x, const fl_desc *d,
                              int64_t size[2])
{
    int64_t want[2] = {0};
    if (fl_arg_given(&e->args, "filter_size"))
        return fl_emit_pair(e, "filter_size", size);
    if (!fl_arg_given(&e->args, "output_size"))
        return fl_fail(FL_EINVAL,
                       "conv2d_transpose: give filter_size, or output_size");
    FL_TRY(fl_emit_pair(e, "output_size", want));
    const int64_t *stride = fl_desc_attr(d, "strides")->longs;
    const int64_t *pad = fl_desc_attr(d, "paddings")->longs;
    const int64_t *gap = fl_desc_attr(d, "dilations")->longs;
    for (int i = 0; i < 2; i++)
        size[i] =
            (want[i] - (x->shape.dim[2 + i] - 1) * stride[i] + 2 * pad[i] - 1) /
                gap[i] +
            1;
    return FL_OK;
}

static fl_err conv2d_transpose(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *w = NULL, *out = NULL;
    const bool cudnn = fl_arg_bool(&e->args, "use_cudnn");
    const int64_t filters = fl_arg_int(&e->args, "num_filters");
    const int64_t groups =
        fl_arg_given(&e->args, "groups") ? fl_arg_int(&e->args, "groups") : 1;
    int64_t size[2] = {0};
    char text[FL_SHAPE_TEXT];
    if (x->shape.rank != 4 || x->shape.dim[1] < 1 || groups < 1)
        return fl_fail(
            FL_ESHAPE,
            "conv2d_transpose: input \"%s\" is %s, groups is %lld, expected an "
            "input of 4 dims, the second known, and 1 group or more",
            x->name, fl_shape_text(&x->shape, text), (long long)groups);
    const int64_t channels = x->shape.dim[1];
    const bool each = channels == groups && filters == channels && !cudnn;
    fl_desc *d = fl_net_desc(e->net, each ? "depthwise_conv2d_transpose"
                                          : "conv2d_transpose");
    if (!e->name)
        e->name = fl_names_generate(e->net->names, e->net->arena, d->type);
    FL_TRY(set_pair(e, d, "strides", "stride"));
    FL_TRY(set_pair(e, d, "paddings", "padding"));
    FL_TRY(set_pair(e, d, "dilations", "dilation"));
    FL_TRY(transposed_size(e, x, d, size));
    const fl_shape shape = {4, {channels, filters / groups, size[0], size[1]}};
    FL_TRY(fl_net_param(e->net, param_attr(e, "param_attr"), e->name, false,
                        x->dtype, &shape, NULL, &w));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_set_in(d, "Input", x);
    fl_set_in(d, "Filter", w);
    fl_set_out(d, "Output", out);
    if (fl_arg_given(&e->args, "output_size"))
        FL_TRY(set_pair(e, d, "output_size", "output_size"));
    fl_set_int(d, "groups", groups);
    fl_set_bool(d, "use_cudnn", cudnn);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_bias(e, 1, 2, &out));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- pool2d --- */

static fl_err adaptive_pool2d(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    if (fl_arg_bool(&e->args, "require_index"))
        return fl_fail(FL_EINVAL, "adaptive_pool2d: require_index is not "
                                  "supported");
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "pool2d");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_str(d, "pooling_type", fl_arg_str(&e->args, "pool_type"));
    FL_TRY(set_pair(e, d, "ksize", "pool_size"));
    fl_set_bool(d, "adaptive", true);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err pool2d(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    const bool all = fl_arg_bool(&e->args, "global_pooling");
    int64_t size[2] = {0};
    FL_TRY(fl_emit_pair(e, "pool_size", size));
    if (!all && (size[0] < 1 || size[1] < 1))
        return fl_fail(FL_EINVAL,
                       "pool2d: pool_size is %lld by %lld; only with "
                       "global_pooling may it be left out",
                       (long long)size[0], (long long)size[1]);
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "pool2d");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_str(d, "pooling_type", fl_arg_str(&e->args, "pool_type"));
    fl_set_ints(d, "ksize", 2, size);
    fl_set_bool(d, "global_pooling", all);
    FL_TRY(set_pair(e, d, "strides", "pool_stride"));
    FL_TRY(set_pair(e, d, "paddings", "pool_padding"));
    fl_set_bool(d, "use_cudnn", fl_arg_bool(&e->args, "use_cudnn"));
    fl_set_bool(d, "ceil_mode", fl_arg_bool(&e->args, "ceil_mode"));
    fl_set_bool(d, "use_mkldnn", false);
    fl_set_bool(d, "exclusive", fl_arg_bool(&e->args, "exclusive"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- batch_norm --- */

static const fl_init one = {.kind = "constant", .a = 1};
static const fl_init zero = {.kind = "constant"};

/* A running value: kept with the parameters, but never trained. */
static fl_err add_running(fl_emit *e, const char *name_arg, const fl_init *init,
                          const fl_shape *shape, fl_var **out)
{
    const fl_var *x = fl_arg_var(&e->args, "input");
    const fl_param_attr attr = {
        .name = fl_arg_str(&e->args, name_arg),
        .init = init,
        .frozen = true,
        .no_average =
            !fl_arg_bool(&e->args, "do_model_average_for_mean_and_var"),
    };
    FL_TRY(fl_net_param(e->net, &attr, e->name, false, x->dtype, shape, NULL,
                        out));
    (*out)->stop_gradient = true;
    return FL_OK;
}

/* Scale, Bias, Mean and Variance, in the order of their names. */
static fl_err add_statistics(fl_emit *e, fl_var *param[4])
{
    const fl_var *x = fl_arg_var(&e->args, "input");
    const char *layout = fl_arg_str(&e->args, "data_layout");
    const int dim = strcmp(layout, "NHWC") ? 1 : x->shape.rank - 1;
    char text[FL_SHAPE_TEXT];
    if (x->shape.rank < 2)
        return fl_fail(FL_ESHAPE,
                       "batch_norm: input \"%s\" is %s, which has "
                       "no channels",
                       x->name, fl_shape_text(&x->shape, text));
    const fl_shape shape = {1, {x->shape.dim[dim]}};
    FL_TRY(fl_net_param(e->net, param_attr(e, "param_attr"), e->name, false,
                        x->dtype, &shape, &one, &param[0]));
    FL_TRY(fl_net_param(e->net, param_attr(e, "bias_attr"), e->name, true,
                        x->dtype, &shape, NULL, &param[1]));
    FL_TRY(add_running(e, "moving_mean_name", &zero, &shape, &param[2]));
    return add_running(e, "moving_variance_name", &one, &shape, &param[3]);
}

/* in_place is a hint that is ignored: the gradient needs the original input,
 * which Fluid overwrites. */
static fl_err batch_norm(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    fl_var *param[4] = {0}, *saved[2] = {0};
    FL_TRY(add_statistics(e, param));
    FL_TRY(fl_emit_stopped(e, x->dtype, &saved[0]));
    FL_TRY(fl_emit_stopped(e, x->dtype, &saved[1]));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "batch_norm");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Scale", param[0]);
    fl_set_in(d, "Bias", param[1]);
    fl_set_in(d, "Mean", param[2]);
    fl_set_in(d, "Variance", param[3]);
    fl_set_out(d, "Y", out);
    fl_set_out(d, "MeanOut", param[2]);
    fl_set_out(d, "VarianceOut", param[3]);
    fl_set_out(d, "SavedMean", saved[0]);
    fl_set_out(d, "SavedVariance", saved[1]);
    fl_set_float(d, "momentum", fl_arg_float(&e->args, "momentum"));
    fl_set_float(d, "epsilon", fl_arg_float(&e->args, "epsilon"));
    fl_set_bool(d, "is_test", fl_arg_bool(&e->args, "is_test"));
    fl_set_str(d, "data_layout", fl_arg_str(&e->args, "data_layout"));
    fl_set_bool(d, "use_mkldnn", false);
    fl_set_bool(d, "fuse_with_relu", fl_arg_bool(&e->args, "fuse_with_relu"));
    fl_set_bool(d, "use_global_stats",
                fl_arg_bool(&e->args, "use_global_stats"));
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- spectral_norm --- */

/* The start vector of the power iteration for the singular value; never
 * trained. */
static fl_err add_start(fl_emit *e, int64_t size, fl_var **out)
{
    static const fl_init normal = {.kind = "normal", .b = 1};
    const fl_var *w = fl_arg_var(&e->args, "weight");
    const fl_shape shape = {1, {size}};
    FL_TRY(fl_net_param(e->net, NULL, e->name, false, w->dtype, &shape, &normal,
                        out));
    (*out)->stop_gradient = true;
    return FL_OK;
}

static fl_err spectral_norm(fl_emit *e)
{
    fl_var *w = fl_arg_var(&e->args, "weight"), *u = NULL, *v = NULL;
    fl_var *out = NULL;
    const int64_t dim = fl_arg_int(&e->args, "dim");
    fl_shape rest = w->shape;
    char text[FL_SHAPE_TEXT];
    if (dim < 0 || dim >= w->shape.rank)
        return fl_fail(FL_EINVAL,
                       "spectral_norm: dim is %lld, but weight \"%s\" is %s",
                       (long long)dim, w->name, fl_shape_text(&w->shape, text));
    rest.dim[dim] = 1;
    FL_TRY(add_start(e, w->shape.dim[dim], &u));
    FL_TRY(add_start(e, fl_shape_span(&rest, 0, rest.rank), &v));
    FL_TRY(fl_emit_tmp(e, w->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "spectral_norm");
    fl_set_in(d, "Weight", w);
    fl_set_in(d, "U", u);
    fl_set_in(d, "V", v);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "dim", dim);
    fl_set_int(d, "power_iters", fl_arg_int(&e->args, "power_iters"));
    fl_set_float(d, "eps", fl_arg_float(&e->args, "eps"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- layer_norm --- */

static fl_err layer_norm(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *w = NULL, *b = NULL;
    fl_var *mean = NULL, *variance = NULL, *out = NULL;
    const int64_t axis = fl_arg_int(&e->args, "begin_norm_axis");
    char text[FL_SHAPE_TEXT];
    if (axis < 1 || axis >= x->shape.rank)
        return fl_fail(FL_ESHAPE,
                       "layer_norm: begin_norm_axis is %lld, but input \"%s\" "
                       "is %s, expected 1 to %d",
                       (long long)axis, x->name, fl_shape_text(&x->shape, text),
                       x->shape.rank - 1);
    const fl_shape shape = {
        1, {fl_shape_span(&x->shape, (int)axis, x->shape.rank)}};
    if (fl_arg_bool(&e->args, "scale"))
        FL_TRY(fl_net_param(e->net, param_attr(e, "param_attr"), e->name, false,
                            x->dtype, &shape, &one, &w));
    if (fl_arg_bool(&e->args, "shift"))
        FL_TRY(fl_net_param(e->net, param_attr(e, "bias_attr"), e->name, true,
                            x->dtype, &shape, NULL, &b));
    FL_TRY(fl_emit_stopped(e, x->dtype, &mean));
    FL_TRY(fl_emit_stopped(e, x->dtype, &variance));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "layer_norm");
    fl_set_in(d, "X", x);
    if (w)
        fl_set_in(d, "Scale", w);
    if (b)
        fl_set_in(d, "Bias", b);
    fl_set_out(d, "Y", out);
    fl_set_out(d, "Mean", mean);
    fl_set_out(d, "Variance", variance);
    fl_set_float(d, "epsilon", fl_arg_float(&e->args, "epsilon"));
    fl_set_int(d, "begin_norm_axis", axis);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- group_norm --- */

/* A parameter for each channel, unless its argument is false. */
static fl_err add_channels(fl_emit *e, const char *arg, const char *slot,
                           bool bias, fl_desc *d)
{
    const fl_var *x = fl_arg_var(&e->args, "input");
    const fl_param_attr *attr = param_attr(e, arg);
    const fl_shape shape = {1, {x->shape.dim[1]}};
    fl_var *v = NULL;
    if (attr && attr->none)
        return FL_OK;
    FL_TRY(fl_net_param(e->net, attr, e->name, bias, x->dtype, &shape,
                        bias ? NULL : &one, &v));
    fl_set_in(d, slot, v);
    return FL_OK;
}

static fl_err group_norm(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    fl_var *mean = NULL, *variance = NULL;
    if (strcmp(fl_arg_str(&e->args, "data_layout"), "NCHW") ||
        x->shape.rank < 2)
        return fl_fail(FL_EINVAL,
                       "group_norm: data_layout is \"%s\" and input has %d "
                       "dims, expected NCHW and 2 or more",
                       fl_arg_str(&e->args, "data_layout"), x->shape.rank);
    fl_desc *d = fl_net_desc(e->net, "group_norm");
    fl_set_in(d, "X", x);
    FL_TRY(add_channels(e, "param_attr", "Scale", false, d));
    FL_TRY(add_channels(e, "bias_attr", "Bias", true, d));
    FL_TRY(fl_emit_stopped(e, x->dtype, &mean));
    FL_TRY(fl_emit_stopped(e, x->dtype, &variance));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_set_out(d, "Y", out);
    fl_set_out(d, "Mean", mean);
    fl_set_out(d, "Variance", variance);
    fl_set_float(d, "epsilon", fl_arg_float(&e->args, "epsilon"));
    fl_set_int(d, "groups", fl_arg_int(&e->args, "groups"));
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- l2_normalize, prelu --- */

static fl_err l2_normalize(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = NULL, *norm = NULL;
    const fl_arg *axis = fl_arg_get(&e->args, "axis");
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    FL_TRY(fl_emit_tmp(e, x->dtype, &norm));
    fl_desc *d = fl_net_desc(e->net, "norm");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Norm", norm);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "axis", x->shape.rank == 1 ? 0 : axis ? axis->i : 1);
    fl_set_float(d, "epsilon", fl_arg_float(&e->args, "epsilon"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* The shape of the slopes: one for all, one for each channel, or one for each
 * element of a sample. */
static fl_shape slopes(const fl_shape *x, const char *mode)
{
    fl_shape s = {1, {1}};
    if (!strcmp(mode, "channel") && x->rank > 1)
        s = (fl_shape){4, {1, x->dim[1], 1, 1}};
    if (!strcmp(mode, "element")) {
        s = *x;
        s.dim[0] = 1;
    }
    return s;
}

static fl_err prelu(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *alpha = NULL, *out = NULL;
    const char *mode = fl_arg_str(&e->args, "mode");
    const fl_shape shape = slopes(&x->shape, mode);
    FL_TRY(fl_net_param(e->net, param_attr(e, "param_attr"), e->name, false,
                        x->dtype, &shape, &one, &alpha));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "prelu");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Alpha", alpha);
    fl_set_out(d, "Out", out);
    fl_set_str(d, "mode", mode);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

const fl_layer_def fl_layers_image[] = {
    {
        .name = "conv2d",
        .doc = "A two-dimensional convolution: act(input convolved with "
               "num_filters filters + bias). A size is one number for both "
               "directions, or two numbers for height and width.",
        .prefix = "", /* the emit function names it */
        .args = {{"input", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"num_filters", FL_ARG_INT},
                 {"filter_size", FL_ARG_INT_OR_INTS},
                 {"stride", FL_ARG_INT_OR_INTS, "1"},
                 {"padding", FL_ARG_INT_OR_INTS, "0"},
                 {"dilation", FL_ARG_INT_OR_INTS, "1"},
                 {"groups", FL_ARG_INT, "None"},
                 {"param_attr", FL_ARG_PARAM, "None"},
                 {"bias_attr", FL_ARG_PARAM, "None"},
                 {"use_cudnn", FL_ARG_BOOL, "True",
                  .doc = "False: a layer with one group for each channel uses "
                         "the operator depthwise_conv2d; otherwise ignored"},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = conv2d,
    },
    {
        .name = "conv2d_transpose",
        .doc = "A two-dimensional transposed convolution (also called "
               "deconvolution): act(input convolved with the transposed "
               "filters + bias).",
        .prefix = "",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"num_filters", FL_ARG_INT},
                 {"output_size", FL_ARG_INT_OR_INTS, "None"},
                 {"filter_size", FL_ARG_INT_OR_INTS, "None",
                  .doc = "the height and width of a filter; None: computed "
                         "from output_size"},
                 {"padding", FL_ARG_INT_OR_INTS, "0",
                  .doc = "the number of elements that are removed on each side "
                         "of the result"},
                 {"stride", FL_ARG_INT_OR_INTS, "1",
                  .doc = "the distance in the result between two elements of "
                         "the input"},
                 {"dilation", FL_ARG_INT_OR_INTS, "1"},
                 {"groups", FL_ARG_INT, "None"},
                 {"param_attr", FL_ARG_PARAM, "None"},
                 {"bias_attr", FL_ARG_PARAM, "None"},
                 {"use_cudnn", FL_ARG_BOOL, "True",
                  .doc = "False: a layer with one group and one filter for "
                         "each channel uses the operator "
                         "depthwise_conv2d_transpose; otherwise ignored"},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = conv2d_transpose,
    },
    {
        .name = "adaptive_pool2d",
        .doc = "Divides an image into windows of nearly equal size, and "
               "computes the largest element or the mean of each.",
        .prefix = "pool2d",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"pool_size", FL_ARG_INT_OR_INTS,
                  .doc = "the height and width of the result"},
                 {"pool_type", FL_ARG_STR, "'max'"},
                 {"require_index", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = adaptive_pool2d,
    },
    {
        .name = "pool2d",
        .doc = "Computes the largest element or the mean of each window of "
               "an image.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"pool_size", FL_ARG_INT_OR_INTS, "-1"},
                 {"pool_type", FL_ARG_STR, "'max'"},
                 {"pool_stride", FL_ARG_INT_OR_INTS, "1"},
                 {"pool_padding", FL_ARG_INT_OR_INTS, "0"},
                 {"global_pooling", FL_ARG_BOOL, "False"},
                 {"use_cudnn", FL_ARG_BOOL, "True"},
                 {"ceil_mode", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"},
                 {"exclusive", FL_ARG_BOOL, "True"}},
        .emit = pool2d,
    },
    {
        .name = "batch_norm",
        .doc = "Batch normalisation: scales each channel to mean 0 and "
               "variance 1 over the batch, then computes act(scale * x + "
               "bias). Running means and variances are kept, and used with "
               "is_test.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "a variable of at least two dimensions, one of them "
                         "the channels"},
                 {"act", FL_ARG_STR, "None"},
                 {"is_test", FL_ARG_BOOL, "False"},
                 {"momentum", FL_ARG_FLOAT, "0.9"},
                 {"epsilon", FL_ARG_FLOAT, "1e-05"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the scale; "
                         "None: the defaults"},
                 {"bias_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the bias; "
                         "None: the defaults"},
                 {"data_layout", FL_ARG_STR, "'NCHW'"},
                 {"in_place", FL_ARG_BOOL, "False",
                  .doc = "accepted and ignored"},
                 {"name", FL_ARG_STR, "None"},
                 {"moving_mean_name", FL_ARG_STR, "None"},
                 {"moving_variance_name", FL_ARG_STR, "None"},
                 {"do_model_average_for_mean_and_var", FL_ARG_BOOL, "False"},
                 {"fuse_with_relu", FL_ARG_BOOL, "False"},
                 {"use_global_stats", FL_ARG_BOOL, "False"}},
        .emit = batch_norm,
    },
    {
        .name = "spectral_norm",
        .doc = "Divides a weight by its largest singular value, which "
               "power_iters iterations estimate. The weight is used as a "
               "matrix whose rows are the indices of dimension dim.",
        .args = {{"weight", FL_ARG_VAR},
                 {"dim", FL_ARG_INT, "0",
                  .doc = "the dimension that becomes the rows of the matrix"},
                 {"power_iters", FL_ARG_INT, "1"},
                 {"eps", FL_ARG_FLOAT, "1e-12"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = spectral_norm,
    },
    {
        .name = "layer_norm",
        .doc = "Layer normalisation: scales each row to mean 0 and "
               "variance 1, then computes act(scale * x + bias). The "
               "dimensions from begin_norm_axis on make a row.",
        .args = {{"input", FL_ARG_VAR},
                 {"scale", FL_ARG_BOOL, "True",
                  .doc = "whether a factor for each element is learned"},
                 {"shift", FL_ARG_BOOL, "True"},
                 {"begin_norm_axis", FL_ARG_INT, "1"},
                 {"epsilon", FL_ARG_FLOAT, "1e-05"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the scale; "
                         "None: the defaults"},
                 {"bias_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the bias; "
                         "None: the defaults"},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = layer_norm,
    },
    {
        .name = "group_norm",
        .doc = "Group normalisation: scales each group of channels of "
               "each image to mean 0 and variance 1, then computes act(scale "
               "* x + bias) with a scale and a bias for each channel.",
        .args = {{"input", FL_ARG_VAR},
                 {"groups", FL_ARG_INT,
                  .doc = "the number of groups of channels"},
                 {"epsilon", FL_ARG_FLOAT, "1e-05"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the scale; "
                         "None: the defaults; False: no scale"},
                 {"bias_attr", FL_ARG_PARAM, "None"},
                 {"act", FL_ARG_STR, "None"},
                 {"data_layout", FL_ARG_STR, "'NCHW'",
                  .doc = "the order of dimensions; must be 'NCHW'"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = group_norm,
    },
    {
        .name = "lrn",
        .doc = "Local response normalisation: input / (k + alpha * sum of "
               "squares of the n nearest channels)^beta.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"n", FL_ARG_INT, "5"},
                 {"k", FL_ARG_FLOAT, "1.0",
                  .doc = "the constant k in the formula above"},
                 {"alpha", FL_ARG_FLOAT, "0.0001"},
                 {"beta", FL_ARG_FLOAT, "0.75"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "lrn",
        .in = {{"X", "input"}},
        .out = {{"MidOut", FL_HIDDEN | FL_STOP}, {"Out"}},
    },
    {
        .name = "l2_normalize",
        .doc = "Divides x by its L2 norm along an axis.",
        .args = {{"x", FL_ARG_VAR},
                 {"axis", FL_ARG_INT, "None",
                  .doc = "the dimension to work along; a negative one counts "
                         "from the last; None: 1"},
                 {"epsilon", FL_ARG_FLOAT, "1e-12"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = l2_normalize,
    },
    {
        .name = "maxout",
        .doc = "The largest element of every `groups` consecutive "
               "channels.",
        .args = {{"x", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"groups", FL_ARG_INT,
                  .doc = "the number of channels in a group"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "maxout",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "prelu",
        .doc = "x if it is positive, otherwise x times a learned slope.",
        .args = {{"x", FL_ARG_VAR},
                 {"mode", FL_ARG_STR,
                  .doc = "'all': one slope; 'channel': one for each channel; "
                         "'element': one for "
                         "each element"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the slopes; "
                         "None: the defaults"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = prelu,
    },
    {0},
};
