/* SPDX-License-Identifier: Apache-2.0 */
/* layers_math.c - products, sums, element-wise operations, comparisons.
 *
 * Layers that differ only in their operator are rows of one macro. */
#include "build/layer.h"

/* If dim is None, the reduction is over all dimensions. */
static fl_err reduce(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    const int64_t first = 0;
    int n = 0;
    const int64_t *dim = fl_arg_ints(&e->args, "dim", &n);
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, e->def->name);
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_ints(d, "dim", n ? n : 1, n ? dim : &first);
    fl_set_bool(d, "keep_dim", fl_arg_bool(&e->args, "keep_dim"));
    fl_set_bool(d, "reduce_all", !n);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

#define REDUCE(type, text)                                                     \
    {                                                                          \
        .name = type,                                                          \
        .doc = text " along the dimensions dim, or over everything.",          \
        .args = {{"input", FL_ARG_VAR},                                        \
                 {"dim", FL_ARG_INTS, "None",                                  \
                  .doc = "the dimensions that are reduced; None: all"},        \
                 {"keep_dim", FL_ARG_BOOL, "False"},                           \
                 {"name", FL_ARG_STR, "None"}},                                \
        .emit = reduce,                                                        \
    }

#define ELEMENTWISE(type, text)                                                \
    {                                                                          \
        .name = type,                                                          \
        .doc = text ", element by element. y is broadcast: its shape must "    \
                    "match that of x from dimension axis on.",                 \
        .args = {{"x", FL_ARG_VAR},                                            \
                 {"y", FL_ARG_VAR},                                            \
                 {"axis", FL_ARG_INT, "-1",                                    \
                  .doc = "the dimension of x that the first dimension of y "   \
                         "matches; -1: the last dimensions match"},            \
                 {"act", FL_ARG_STR, "None"},                                  \
                 {"name", FL_ARG_STR, "None"}},                                \
        .op = type, .in = {{"X", "x"}, {"Y", "y"}}, .out = {{"Out"}},          \
        .names_out = true,                                                     \
    }

#define COMPARE(type, text)                                                    \
    {                                                                          \
        .name = type, .doc = "Whether " text ", element by element.",          \
        .args = {{"x", FL_ARG_VAR},                                            \
                 {"y", FL_ARG_VAR},                                            \
                 {"cond", FL_ARG_VAR, "None"}},                                \
        .op = type, .in = {{"X", "x"}, {"Y", "y"}}, .out = {{"Out", FL_STOP}}, \
        .into = "cond",                                                        \
    }

#define LOGICAL(type, text)                                                    \
    {                                                                          \
        .name = type, .doc = text ", element by element.",                     \
        .args = {{"x", FL_ARG_VAR},                                            \
                 {"y", FL_ARG_VAR},                                            \
                 {"out", FL_ARG_VAR, "None"},                                  \
                 {"name", FL_ARG_STR, "None"}},                                \
        .op = type, .in = {{"X", "x"}, {"Y", "y"}}, .out = {{"Out"}},          \
        .into = "out", .names_out = true,                                      \
    }

const fl_layer_def fl_layers_math[] = {
    {
        .name = "mean",
        .doc = "The mean of all elements.",
        .args = {{"x", FL_ARG_VAR}, {"name", FL_ARG_STR, "None"}},
        .op = "mean",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .names_out = true,
    },
    {
        .name = "mul",
        .doc = "A matrix product. The first x_num_col_dims dimensions of x "
               "(y_num_col_dims of y) are flattened into rows, the others "
               "into columns.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR},
                 {"x_num_col_dims", FL_ARG_INT, "1"},
                 {"y_num_col_dims", FL_ARG_INT, "1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "mul",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
        .names_out = true,
    },
    {
        .name = "matmul",
        .doc = "The matrix product alpha * x y over the last two "
               "dimensions, for each matrix of a batch.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR},
                 {"transpose_x", FL_ARG_BOOL, "False"},
                 {"transpose_y", FL_ARG_BOOL, "False"},
                 {"alpha", FL_ARG_FLOAT, "1.0"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "matmul",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
        .map = {{"transpose_x", "transpose_X"}, {"transpose_y", "transpose_Y"}},
    },
    {
        .name = "scale",
        .doc = "Computes scale * x + bias, or scale * (x + bias).",
        .args = {{"x", FL_ARG_VAR},
                 {"scale", FL_ARG_FLOAT, "1.0"},
                 {"bias", FL_ARG_FLOAT, "0.0"},
                 {"bias_after_scale", FL_ARG_BOOL, "True"},
                 {"act", FL_ARG_STR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "scale",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .names_out = true,
    },
    {
        .name = "_scale", /* an older form, whose output is an argument */
        .doc = "Computes scale * x + bias, or scale * (x + bias).",
        .prefix = "scale",
        .args = {{"x", FL_ARG_VAR},
                 {"scale", FL_ARG_FLOAT, "1.0"},
                 {"bias", FL_ARG_FLOAT, "0.0"},
                 {"bias_after_scale", FL_ARG_BOOL, "True"},
                 {"out", FL_ARG_VAR, "None"}},
        .op = "scale",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .into = "out",
    },
    {
        .name = "sum",
        .doc = "The sum of variables of equal shape.",
        .args = {{"x", FL_ARG_VARS, .doc = "the variables that are added"}},
        .op = "sum",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "sums",
        .doc = "The sum of variables of equal shape.",
        .prefix = "sum",
        .args = {{"input", FL_ARG_VARS, .doc = "the variables that are added"},
                 {"out", FL_ARG_VAR, "None"}},
        .op = "sum",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
        .into = "out",
    },
    {
        .name = "clip",
        .doc = "Limits every element to the range from min to max.",
        .args = {{"x", FL_ARG_VAR},
                 {"min", FL_ARG_FLOAT},
                 {"max", FL_ARG_FLOAT},
                 {"name", FL_ARG_STR, "None"}},
        .op = "clip",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .names_out = true,
    },
    {
        .name = "clip_by_norm",
        .doc = "Scales x down to norm max_norm if its norm is larger.",
        .args = {{"x", FL_ARG_VAR},
                 {"max_norm", FL_ARG_FLOAT},
                 {"name", FL_ARG_STR, "None"}},
        .op = "clip_by_norm",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .names_out = true,
    },
    {
        .name = "cumsum",
        .doc = "The sum of each element and all elements before it along an "
               "axis.",
        .args = {{"x", FL_ARG_VAR},
                 {"axis", FL_ARG_INT, "-1"},
                 {"exclusive", FL_ARG_BOOL, "False",
                  .doc = "whether the element itself is left out"},
                 {"reverse", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "cumsum",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    REDUCE("reduce_sum", "The sum"),
    REDUCE("reduce_mean", "The mean"),
    REDUCE("reduce_max", "The largest element"),
    REDUCE("reduce_min", "The smallest element"),
    REDUCE("reduce_prod", "The product"),
    REDUCE("reduce_all", "Whether all elements are true"),
    REDUCE("reduce_any", "Whether one element is true"),
    ELEMENTWISE("elementwise_add", "x + y"),
    ELEMENTWISE("elementwise_sub", "x - y"),
    ELEMENTWISE("elementwise_mul", "x * y"),
    ELEMENTWISE("elementwise_div", "x / y"),
    ELEMENTWISE("elementwise_max", "The larger of x and y"),
    ELEMENTWISE("elementwise_min", "The smaller of x and y"),
    ELEMENTWISE("elementwise_pow", "x to the power y"),
    ELEMENTWISE("elementwise_mod", "The remainder of x by y"),
    ELEMENTWISE("elementwise_floordiv", "x / y rounded down"),
    {
        .name = "less_than",
        .doc = "Whether x < y, element by element.",
        .args = {{"x", FL_ARG_VAR},
                 {"y", FL_ARG_VAR},
                 {"force_cpu", FL_ARG_BOOL, "None"},
                 {"cond", FL_ARG_VAR, "None"}},
        .op = "less_than",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out", FL_STOP}},
        .into = "cond",
    },
    COMPARE("less_equal", "x <= y"),
    COMPARE("greater_than", "x > y"),
    COMPARE("greater_equal", "x >= y"),
    COMPARE("equal", "x == y"),
    COMPARE("not_equal", "x != y"),
    LOGICAL("logical_and", "x and y"),
    LOGICAL("logical_or", "x or y"),
    LOGICAL("logical_xor", "Whether exactly one of x and y is true"),
    {
        .name = "logical_not",
        .doc = "The negation of x, element by element.",
        .args = {{"x", FL_ARG_VAR},
                 {"out", FL_ARG_VAR, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "logical_not",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .into = "out",
        .names_out = true,
    },
    {0},
};
