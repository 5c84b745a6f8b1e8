/* SPDX-License-Identifier: Apache-2.0 */
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

/* The first or the last step is a sequence_pool, and its instance is named
 * after that. */
static fl_err emit_step(fl_emit *e, const char *pool_type)
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
    return emit_step(e, "first");
}

static fl_err last_step(fl_emit *e)
{
    return emit_step(e, "last");
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
        .doc = "Reduces each sequence to one row.",
        .args = {{"input", FL_ARG_VAR, .doc = "a variable of sequences"},
                 {"pool_type", FL_ARG_STR,
                  .doc = "'average', 'sum', 'sqrt' (the sum divided by the "
                         "square root of the "
                         "length), 'max', 'last' or 'first'"},
                 {"is_test", FL_ARG_BOOL, "False",
                  .doc = "accepted and ignored"},
                 {"pad_value", FL_ARG_FLOAT, "0.0",
                  .doc = "the value of the row of an empty sequence"}},
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
        .doc = "A convolution along each sequence: act(filter_size "
               "neighbouring rows x weight + bias). Rows beyond the ends "
               "of a sequence are zeros.",
        .args = {{"input", FL_ARG_VAR},
                 {"num_filters", FL_ARG_INT,
                  .doc = "the number of filters, which is the number of output "
                         "columns"},
                 {"filter_size", FL_ARG_INT, "3",
                  .doc =
                      "the number of neighbouring rows that a filter covers"},
                 {"filter_stride", FL_ARG_INT, "1", .doc = "must be 1"},
                 {"padding", FL_ARG_BOOL, "None",
                  .doc =
                      "accepted and ignored: rows beyond the ends are zeros"},
                 {"bias_attr", FL_ARG_PARAM, "None"},
                 {"param_attr", FL_ARG_PARAM, "None"},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = sequence_conv,
    },
    {
        .name = "sequence_softmax",
        .doc = "Softmax over each sequence of single numbers.",
        .args = {{"input", FL_ARG_VAR},
                 {"use_cudnn", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_softmax",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_expand",
        .doc = "Repeats sequence i of x (or row i, if x has no sequences) "
               "n times, where n is the length of sequence i of y at "
               "level ref_level.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR,
                  .doc = "the variable whose sequences are used"},
                 {"ref_level", FL_ARG_INT, "-1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_expand",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_expand_as",
        .doc = "Repeats row i of x n times, where n is the length of "
               "sequence i of y.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR,
                  .doc = "the variable whose sequences are used"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_expand_as",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_pad",
        .doc = "Pads sequences with pad_value to equal length, and returns "
               "their former lengths, too.",
        .returns = "out, length",
        .args = {{"x", FL_ARG_VAR, .doc = "a variable of sequences"},
                 {"pad_value", FL_ARG_VAR,
                  .doc = "a variable with the value of the padding: one "
                         "number, or one row"},
                 {"maxlen", FL_ARG_INT, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_pad",
        .in = {{"X", "x"}, {"PadValue", "pad_value"}},
        .out = {{"Out"}, {"Length", FL_STOP}},
        .map = {{"maxlen", "padded_length"}},
    },
    {
        .name = "sequence_unpad",
        .doc = "Removes padding: sequence i has the first length[i] rows "
               "of x[i].",
        .args = {{"x", FL_ARG_VAR},
                 {"length", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_unpad",
        .in = {{"X", "x"}, {"Length", "length"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_mask",
        .doc = "For each number n in x a row of maxlen numbers, of which "
               "the first n are 1 and the others 0.",
        .args = {{"x", FL_ARG_VAR, .doc = "the length of each sequence"},
                 {"maxlen", FL_ARG_INT, "None",
                  .doc =
                      "the number of columns; None: the largest number in x"},
                 {"dtype", FL_ARG_DTYPE, "'int64'"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_mask",
        .in = {{"X", "x"}},
        .out = {{"Y", FL_STOP}},
        .map = {{"dtype", "out_dtype"}},
    },
    {
        .name = "sequence_reverse",
        .doc = "Reverses the rows of each sequence.",
        .args = {{"x", FL_ARG_VAR}, {"name", FL_ARG_STR, "None"}},
        .op = "sequence_reverse",
        .in = {{"X", "x"}},
        .out = {{"Y"}},
    },
    {
        .name = "sequence_slice",
        .doc = "Copies length[i] rows of sequence i, from its row "
               "offset[i] on.",
        .args = {{"input", FL_ARG_VAR},
                 {"offset", FL_ARG_VAR,
                  .doc = "for each sequence the number of its first row"},
                 {"length", FL_ARG_VAR,
                  .doc = "for each sequence the number of rows"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_slice",
        .in = {{"X", "input"}, {"Offset", "offset"}, {"Length", "length"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_enumerate",
        .doc = "For each id of a sequence a row with it and the following "
               "ids, win_size in all.",
        .args = {{"input", FL_ARG_VAR},
                 {"win_size", FL_ARG_INT},
                 {"pad_value", FL_ARG_INT, "0",
                  .doc = "the id that is used after the end of a sequence"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_enumerate",
        .in = {{"X", "input"}},
        .out = {{"Out", FL_STOP}},
    },
    {
        .name = "sequence_scatter",
        .doc = "Adds the numbers in sequence i of updates to row i of "
               "input, at the columns in sequence i of index.",
        .args = {{"input", FL_ARG_VAR},
                 {"index", FL_ARG_VAR, .doc = "column numbers, as sequences"},
                 {"updates", FL_ARG_VAR,
                  .doc = "the numbers that are added, as sequences like those "
                         "of index"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_scatter",
        .in = {{"X", "input"}, {"Ids", "index"}, {"Updates", "updates"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_concat",
        .doc = "Concatenates variables sequence by sequence.",
        .args = {{"input", FL_ARG_VARS,
                  .doc = "the variables that are concatenated"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "sequence_concat",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "sequence_reshape",
        .doc = "Reshapes each sequence into rows of new_dim elements.",
        .args = {{"input", FL_ARG_VAR}, {"new_dim", FL_ARG_INT}},
        .op = "sequence_reshape",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "lod_reset",
        .doc = "Divides the rows of x into other sequences: those of y, or "
               "else those of target_lod.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR, "None",
                  .doc = "a variable with the new sequences, or with their "
                         "offsets as elements"},
                 {"target_lod", FL_ARG_INTS, "None"}},
        .emit = lod_reset,
    },
    {0},
};
