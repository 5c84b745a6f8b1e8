/* SPDX-License-Identifier: Apache-2.0 */
/* layers_picture.c - layers that resize and pad images and cut them into
 * windows, and layers that combine rows with their neighbours, positions or
 * counts. */
#include "build/layer.h"

/* --- sizes --- */

/* Height and width: as given, or `scale` times those of the input. */
static fl_err wanted_size(const fl_emit *e, const fl_var *x, int64_t size[2])
{
    char text[FL_SHAPE_TEXT];
    if (x->shape.rank != 4)
        return fl_fail(FL_ESHAPE, "%s: input \"%s\" is %s, expected [N,C,H,W]",
                       e->args.what, x->name, fl_shape_text(&x->shape, text));
    if (fl_arg_given(&e->args, "out_shape"))
        return fl_emit_pair(e, "out_shape", size);
    const bool known = x->shape.dim[2] > 0 && x->shape.dim[3] > 0;
    if (!fl_arg_given(&e->args, "scale") || !known)
        return fl_fail(FL_EINVAL,
                       "%s: give out_shape, or scale and an input "
                       "of known size",
                       e->args.what);
    for (int i = 0; i < 2; i++)
        size[i] = (int64_t)((double)x->shape.dim[2 + i] *
                            fl_arg_float(&e->args, "scale"));
    return FL_OK;
}

static fl_err emit_resize(fl_emit *e, bool bilinear, const int64_t size[2],
                          fl_var *actual, bool align, int64_t mode)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    fl_desc *d =
        fl_net_desc(e->net, bilinear ? "bilinear_interp" : "nearest_interp");
    e->name =
        fl_arg_known(e->args.def, "name") ? fl_arg_str(&e->args, "name") : NULL;
    if (!e->name)
        e->name = fl_names_generate(e->net->names, e->net->arena, d->type);
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_set_in(d, "X", x);
    if (actual)
        fl_set_in(d, "OutSize", actual);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "out_h", size[0]);
    fl_set_int(d, "out_w", size[1]);
    fl_set_str(d, "interp_method", bilinear ? "bilinear" : "nearest");
    fl_set_bool(d, "align_corners", align);
    fl_set_int(d, "align_mode", mode);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err resize_to(fl_emit *e, bool bilinear, int64_t mode)
{
    int64_t size[2] = {0};
    FL_TRY(wanted_size(e, fl_arg_var(&e->args, "input"), size));
    return emit_resize(e, bilinear, size, fl_arg_var(&e->args, "actual_shape"),
                       fl_arg_bool(&e->args, "align_corners"), mode);
}

static fl_err method_of(const fl_emit *e, bool *bilinear)
{
    const char *name = fl_arg_str(&e->args, "resample");
    *bilinear = !strcmp(name, "BILINEAR");
    if (*bilinear || !strcmp(name, "NEAREST"))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s: resample is \"%s\", expected BILINEAR or NEAREST",
                   e->args.what, name);
}

static fl_err image_resize(fl_emit *e)
{
    bool bilinear;
    FL_TRY(method_of(e, &bilinear));
    return resize_to(e, bilinear, fl_arg_int(&e->args, "align_mode"));
}

static fl_err resize_bilinear(fl_emit *e)
{
    return resize_to(e, true, fl_arg_int(&e->args, "align_mode"));
}

static fl_err resize_nearest(fl_emit *e)
{
    return resize_to(e, false, 1);
}

/* The shorter side becomes this long, the other keeps its proportion. */
static fl_err image_resize_short(fl_emit *e)
{
    const fl_shape *s = &fl_arg_var(&e->args, "input")->shape;
    const int64_t length = fl_arg_int(&e->args, "out_short_len");
    bool bilinear;
    char text[FL_SHAPE_TEXT];
    FL_TRY(method_of(e, &bilinear));
    if (s->rank != 4 || s->dim[2] < 1 || s->dim[3] < 1)
        return fl_fail(FL_ESHAPE,
                       "%s: input is %s, expected [N,C,H,W] of known "
                       "size",
                       e->args.what, fl_shape_text(s, text));
    const int shorter = s->dim[2] <= s->dim[3] ? 0 : 1;
    const double by = (double)length / (double)s->dim[2 + shorter];
    int64_t size[2];
    size[shorter] = length;
    size[1 - shorter] = (int64_t)((double)s->dim[3 - shorter] * by + 0.5);
    return emit_resize(e, bilinear, size, NULL, true, 1);
}

/* --- windows --- */

static fl_err im2sequence(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    const fl_arg *padding = fl_arg_get(&e->args, "padding");
    int64_t size[2] = {0}, stride[2] = {0}, two[2] = {0};
    if (fl_arg_given(&e->args, "input_image_size"))
        return fl_fail(FL_EINVAL,
                       "im2sequence: input_image_size is not supported");
    FL_TRY(fl_emit_pair(e, "filter_size", size));
    FL_TRY(fl_emit_pair(e, "stride", stride));
    if (padding->n != 4)
        FL_TRY(fl_emit_pair(e, "padding", two));
    const int64_t around[] = {two[0], two[1], two[0], two[1]};
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "im2sequence");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_ints(d, "kernels", 2, size);
    fl_set_ints(d, "strides", 2, stride);
    fl_set_ints(d, "paddings", 4, padding->n == 4 ? padding->ints : around);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err row_conv(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *w = NULL, *out = NULL;
    const fl_arg *attr = fl_arg_get(&e->args, "param_attr");
    const int64_t rows = fl_arg_int(&e->args, "future_context_size") + 1;
    if (x->shape.rank != 2 || rows < 1)
        return fl_fail(FL_ESHAPE,
                       "row_conv: input has %d dims and future_context_size is "
                       "%lld, expected 2 and 0 or more",
                       x->shape.rank, (long long)rows - 1);
    const fl_shape shape = {2, {rows, x->shape.dim[1]}};
    FL_TRY(fl_net_param(e->net, attr ? attr->attr : NULL, e->name, false,
                        x->dtype, &shape, NULL, &w));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "row_conv");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Filter", w);
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- x W y --- */

static fl_err bilinear_tensor_product(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *y = fl_arg_var(&e->args, "y");
    const fl_arg *param = fl_arg_get(&e->args, "param_attr");
    const fl_arg *bias = fl_arg_get(&e->args, "bias_attr");
    const int64_t size = fl_arg_int(&e->args, "size");
    fl_var *w = NULL, *b = NULL, *out = NULL;
    if (x->shape.rank != 2 || y->shape.rank != 2)
        return fl_fail(FL_ESHAPE,
                       "bilinear_tensor_product: x has %d dims, y %d, expected "
                       "2 and 2",
                       x->shape.rank, y->shape.rank);
    const fl_shape shape = {3, {size, x->shape.dim[1], y->shape.dim[1]}};
    FL_TRY(fl_net_param(e->net, param ? param->attr : NULL, e->name, false,
                        x->dtype, &shape, NULL, &w));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "bilinear_tensor_product");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Y", y);
    fl_set_in(d, "Weight", w);
    if (!bias || !bias->attr->none) {
        const fl_shape row = {2, {1, size}};
        FL_TRY(fl_net_param(e->net, bias ? bias->attr : NULL, e->name, true,
                            x->dtype, &row, NULL, &b));
        fl_set_in(d, "Bias", b);
    }
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

#define RESIZED                                                                \
    {"input", FL_ARG_VAR}, {"out_shape", FL_ARG_INTS, "None"},                 \
    {                                                                          \
        "scale", FL_ARG_FLOAT, "None",                                         \
            .doc = "the factor of height and width, used if out_shape is None" \
    }

const fl_layer_def fl_layers_picture[] = {
    {
        .name = "image_resize",
        .doc = "Resizes images to out_shape, or else by the factor scale.",
        .prefix = "",
        .args = {RESIZED,
                 {"name", FL_ARG_STR, "None"},
                 {"resample", FL_ARG_STR, "'BILINEAR'"},
                 {"actual_shape", FL_ARG_VAR, "None"},
                 {"align_corners", FL_ARG_BOOL, "True"},
                 {"align_mode", FL_ARG_INT, "1"}},
        .emit = image_resize,
    },
    {
        .name = "resize_bilinear",
        .doc = "Resizes images by bilinear interpolation.",
        .prefix = "",
        .args = {RESIZED,
                 {"name", FL_ARG_STR, "None"},
                 {"actual_shape", FL_ARG_VAR, "None"},
                 {"align_corners", FL_ARG_BOOL, "True"},
                 {"align_mode", FL_ARG_INT, "1"}},
        .emit = resize_bilinear,
    },
    {
        .name = "resize_nearest",
        .doc = "Resizes images: each element of the result is the nearest one "
               "of the input.",
        .prefix = "",
        .args = {RESIZED,
                 {"name", FL_ARG_STR, "None"},
                 {"actual_shape", FL_ARG_VAR, "None"},
                 {"align_corners", FL_ARG_BOOL, "True"}},
        .emit = resize_nearest,
    },
    {
        .name = "image_resize_short",
        .doc = "Resizes images so that the shorter side has the length "
               "out_short_len, and keeps their proportions.",
        .prefix = "",
        .args = {{"input", FL_ARG_VAR},
                 {"out_short_len", FL_ARG_INT},
                 {"resample", FL_ARG_STR, "'BILINEAR'"}},
        .emit = image_resize_short,
    },
    {
        .name = "pad2d",
        .doc = "Adds elements around images.",
        .args = {{"input", FL_ARG_VAR},
                 {"paddings", FL_ARG_INTS, "[0, 0, 0, 0]",
                  .doc = "the numbers of elements that are added: top, bottom, "
                         "left, right"},
                 {"mode", FL_ARG_STR, "'constant'",
                  .doc = "what the added elements are: 'constant' (pad_value), "
                         "'reflect' (the image mirrored) or 'edge' (the edge "
                         "repeated)"},
                 {"pad_value", FL_ARG_FLOAT, "0.0",
                  .doc = "the value of added elements with mode 'constant'"},
                 {"data_format", FL_ARG_STR, "'NCHW'"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "pad2d",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "im2sequence",
        .doc = "Converts each image to a sequence with a row for each "
               "window.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "images: [batch, channels, height, width]"},
                 {"filter_size", FL_ARG_INT_OR_INTS, "1",
                  .doc = "the height and width of a window"},
                 {"stride", FL_ARG_INT_OR_INTS, "1"},
                 {"padding", FL_ARG_INT_OR_INTS, "0",
                  .doc = "the number of zeros that are added: one for all "
                         "sides, two for height and width, or four for top, "
                         "left, bottom and right"},
                 {"input_image_size", FL_ARG_VAR, "None"},
                 {"out_stride", FL_ARG_INT_OR_INTS, "1"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = im2sequence,
    },
    {
        .name = "affine_channel",
        .doc = "Computes scale * x + bias with one scale and one bias for "
               "each channel.",
        .args = {{"x", FL_ARG_VAR},
                 {"scale", FL_ARG_VAR, "None",
                  .doc = "a factor for each channel"},
                 {"bias", FL_ARG_VAR, "None", .doc = "a bias for each channel"},
                 {"data_layout", FL_ARG_STR, "'NCHW'"},
                 {"name", FL_ARG_STR, "None"},
                 {"act", FL_ARG_STR, "None"}},
        .op = "affine_channel",
        .in = {{"X", "x"}, {"Scale", "scale"}, {"Bias", "bias"}},
        .out = {{"Out"}},
    },
    {
        .name = "row_conv",
        .doc = "A row convolution: act(weighted sum of each row of a "
               "sequence and the future_context_size rows after it), "
               "column by column.",
        .args = {{"input", FL_ARG_VAR},
                 {"future_context_size", FL_ARG_INT},
                 {"param_attr", FL_ARG_PARAM, "None"},
                 {"act", FL_ARG_STR, "None"}},
        .emit = row_conv,
    },
    {
        .name = "selu",
        .doc = "Scaled exponential linear unit: scale * x above 0, scale * "
               "alpha * (exp(x) - 1) below.",
        .args = {{"x", FL_ARG_VAR},
                 {"scale", FL_ARG_FLOAT, "None",
                  .doc = "the factor; None: about 1.0507"},
                 {"alpha", FL_ARG_FLOAT, "None",
                  .doc = "the coefficient alpha; None: about 1.6733"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "selu",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "bilinear_tensor_product",
        .doc = "A bilinear layer: act(x W y + bias) for each row, with "
               "`size` matrices W.",
        .args = {{"x", FL_ARG_VAR,
                  .doc = "the first input, one row for each sample"},
                 {"y", FL_ARG_VAR,
                  .doc = "the second input, one row for each sample"},
                 {"size", FL_ARG_INT},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"},
                 {"param_attr", FL_ARG_PARAM, "None"},
                 {"bias_attr", FL_ARG_PARAM, "None"}},
        .emit = bilinear_tensor_product,
    },
    {
        .name = "add_position_encoding",
        .doc = "Computes alpha * input + beta * e, where e are sines and "
               "cosines of the position of each row in its sequence.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "sequences of rows, or [batch, positions, columns]"},
                 {"alpha", FL_ARG_FLOAT},
                 {"beta", FL_ARG_FLOAT},
                 {"name", FL_ARG_STR, "None"}},
        .op = "add_position_encoding",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "similarity_focus",
        .doc = "Makes a mask that is 1 where an element of one of the "
               "chosen matrices is the largest of its row and column among "
               "those not chosen before, and 0 elsewhere.",
        .args = {{"input", FL_ARG_VAR,
                  .doc =
                      "a variable of four dimensions; the first is the batch"},
                 {"axis", FL_ARG_INT,
                  .doc = "the dimension that indexes the matrices: 1, 2 or 3"},
                 {"indexes", FL_ARG_INTS},
                 {"name", FL_ARG_STR, "None"}},
        .op = "similarity_focus",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {0},
};
