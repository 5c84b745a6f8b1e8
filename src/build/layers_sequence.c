/* layers_sequence.c - layers over sequences, which the LoD groups. */
#include "build/layer.h"

#include <strings.h>

static fl_err sequence_pool(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL, *index = NULL;
    const char *type = fl_arg_str(&e->args, "pool_type");
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    FL_TRY(fl_emit_tmp(e, FL_I32, &index));
    fl_desc *d = fl_net_desc(e->net, "sequence_pool");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_out(d, "MaxIndex", index);
    fl_set_upper(d, "pooltype", type);
    fl_set_bool(d, "is_test", fl_arg_bool(&e->args, "is_test"));
    fl_set_float(d, "pad_value", fl_arg_float(&e->args, "pad_value"));
    FL_TRY(fl_net_append(e->net, d));
    index->stop_gradient = !strcasecmp(type, "max");
    fl_emit_return(e, out);
    return FL_OK;
}

/* The first or the last step is a pool, and named so. */
static fl_err step(fl_emit *e, const char *pool_type)
{
    fl_var *out = NULL;
    FL_TRY(
        fl_layer_get(e->net, "sequence_pool",
                     (fl_arg[]){{"input", .var = fl_arg_var(&e->args, "input")},
                                {"pool_type", .s = pool_type},
                                {0}},
                     &out));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err first_step(fl_emit *e)
{
    return step(e, "first");
}

static fl_err last_step(fl_emit *e)
{
    return step(e, "last");
}

static fl_err sequence_conv(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *w = NULL, *out = NULL;
    const fl_arg *attr = fl_arg_get(&e->args, "param_attr");
    const int64_t length = fl_arg_int(&e->args, "filter_size");
    char text[FL_SHAPE_TEXT];
    if (x->shape.rank != 2)
        return fl_fail(FL_ESHAPE,
                       "sequence_conv: input \"%s\" is %s, expected 2 dims",
                       x->name, fl_shape_text(&x->shape, text));
    const fl_shape shape = {
        2, {length * x->shape.dim[1], fl_arg_int(&e->args, "num_filters")}};
    FL_TRY(fl_net_param(e->net, attr ? attr->attr : NULL, e->name, false,
                        x->dtype, &shape, NULL, &w));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "sequence_conv");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Filter", w);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "contextStride", fl_arg_int(&e->args, "filter_stride"));
    fl_set_int(d, "contextStart", -(length / 2));
    fl_set_int(d, "contextLength", length);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_bias(e, 1, 2, &out));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err lod_reset(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = NULL;
    int n = 0;
    const int64_t *off = fl_arg_ints(&e->args, "target_lod", &n);
    const bool from_y = fl_arg_given(&e->args, "y");
    if (!from_y && !n)
        return fl_fail(FL_EINVAL, "lod_reset: give y or target_lod");
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "lod_reset");
    fl_set_in(d, "X", x);
    if (from_y)
        fl_set_in(d, "Y", fl_arg_var(&e->args, "y"));
    else
        fl_set_ints(d, "target_lod", n, off);
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

const fl_layer_def fl_layers_sequence[] = {
    {
        .name = "sequence_pool",
        .doc = "One row for each sequence: average, sum, sqrt (the sum over "
               "the root of the length), max, last or first. An empty "
               "sequence gives pad_value.",
        .args = {{"input", FL_ARG_VAR},
                 {"pool_type", FL_ARG_STR},
                 {"is_test", FL_ARG_BOOL, "False"},
                 {"pad_value", FL_ARG_FLOAT, "0.0"}},
        .emit = sequence_pool,
    },
    {
        .name = "sequence_first_step",
        .doc = "The first row of each sequence.",
        .prefix = "",
        .args = {{"input", FL_ARG_VAR}},
        .emit = first_step,
    },
    {
        .name = "sequence_last_step",
        .doc = "The last row of each sequence.",
        .prefix = "",
        .args = {{"input", FL_ARG_VAR}},
        .emit = last_step,
    },
    {
        .name = "sequence_conv",
        .doc = "act(each row of a sequence with its neighbours, filter_size "
               "in all, times a weight, + bias). Beyond the ends are zeros.",
        .args = {{"input", FL_ARG_VAR},
                 {"num_filters", FL_ARG_INT},
                 {"filter_size", FL_ARG_INT, "3"},
                 {"filter_stride", FL_ARG_INT, "1"},
                 {"padding", FL_ARG_BOOL, "None"},
                 {"bias_attr", FL_ARG_PARAM, "None"},
                 {"param_attr", FL_ARG_PARAM, "None"},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = sequence_conv,
    },
    {
        .name = "sequence_softmax",
        .doc = "softmax over each sequence of one column.",
        .args = {{"input", FL_ARG_VAR},
                 {"use_cudnn", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_softmax",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_expand",
        .doc = "Sequence i of x (row i, if it has none) as often as sequence "
               "i of y is long, at level ref_level; -1 is the last.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR},
                 {"ref_level", FL_ARG_INT, "-1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_expand",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_expand_as",
        .doc = "Row i of x as often as sequence i of y is long.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_expand_as",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_pad",
        .doc = "Sequences side by side, pad_value after those shorter than "
               "maxlen, or than the longest; and how long they were.",
        .returns = "out, length",
        .args = {{"x", FL_ARG_VAR},
                 {"pad_value", FL_ARG_VAR},
                 {"maxlen", FL_ARG_INT, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_pad",
        .in = {{"X", "x"}, {"PadValue", "pad_value"}},
        .out = {{"Out"}, {"Length", FL_STOP}},
        .map = {{"maxlen", "padded_length"}},
    },
    {
        .name = "sequence_unpad",
        .doc = "The first length[i] rows of x[i], as sequences.",
        .args = {{"x", FL_ARG_VAR},
                 {"length", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_unpad",
        .in = {{"X", "x"}, {"Length", "length"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_mask",
        .doc = "For each x a row of maxlen numbers (as many as the largest x "
               "has, if not given), the first x of which are 1, the others 0.",
        .args = {{"x", FL_ARG_VAR},
                 {"maxlen", FL_ARG_INT, "None"},
                 {"dtype", FL_ARG_DTYPE, "'int64'"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_mask",
        .in = {{"X", "x"}},
        .out = {{"Y", FL_STOP}},
        .map = {{"dtype", "out_dtype"}},
    },
    {
        .name = "sequence_reverse",
        .doc = "The rows of each sequence from its end.",
        .args = {{"x", FL_ARG_VAR}, {"name", FL_ARG_STR, "None"}},
        .op = "sequence_reverse",
        .in = {{"X", "x"}},
        .out = {{"Y"}},
    },
    {
        .name = "sequence_slice",
        .doc = "length[i] rows of sequence i, from its row offset[i] on.",
        .args = {{"input", FL_ARG_VAR},
                 {"offset", FL_ARG_VAR},
                 {"length", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_slice",
        .in = {{"X", "input"}, {"Offset", "offset"}, {"Length", "length"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_enumerate",
        .doc = "Each id with those after it, win_size in all; pad_value "
               "beyond the end of the sequence.",
        .args = {{"input", FL_ARG_VAR},
                 {"win_size", FL_ARG_INT},
                 {"pad_value", FL_ARG_INT, "0"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_enumerate",
        .in = {{"X", "input"}},
        .out = {{"Out", FL_STOP}},
    },
    {
        .name = "sequence_scatter",
        .doc = "input with the updates of sequence i added to the columns "
               "index of row i.",
        .args = {{"input", FL_ARG_VAR},
                 {"index", FL_ARG_VAR},
                 {"updates", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_scatter",
        .in = {{"X", "input"}, {"Ids", "index"}, {"Updates", "updates"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_concat",
        .doc = "Variables joined sequence by sequence.",
        .args = {{"input", FL_ARG_VARS}, {"name", FL_ARG_STR, "None"}},
        .op = "sequence_concat",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_reshape",
        .doc = "Rows of new_dim elements; each sequence keeps its own.",
        .args = {{"input", FL_ARG_VAR}, {"new_dim", FL_ARG_INT}},
        .op = "sequence_reshape",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "lod_reset",
        .doc = "x cut into other sequences: those of y, or the offsets "
               "target_lod.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR, "None"},
                 {"target_lod", FL_ARG_INTS, "None"}},
        .emit = lod_reset,
    },
    {0},
};
