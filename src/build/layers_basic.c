/* SPDX-License-Identifier: Apache-2.0 */
/* layers_basic.c - data, layers with parameters, dropout, softmax. */
#include "build/layer.h"

/* --- data --- */

static fl_err data(fl_emit *e)
{
    fl_var like = {.name = fl_arg_str(&e->args, "name"),
                   .kind = (fl_kind)fl_arg_int(&e->args, "type"),
                   .dtype = fl_arg_dtype(&e->args, "dtype"),
                   .lod_level = (int)fl_arg_int(&e->args, "lod_level"),
                   .stop_gradient = fl_arg_bool(&e->args, "stop_gradient"),
                   .is_data = true};
    int n = 0;
    const int64_t *dim = fl_arg_ints(&e->args, "shape", &n);
    bool batch = fl_arg_bool(&e->args, "append_batch_size");
    for (int i = 0; i < n; i++)
        batch = batch && dim[i] >= 0; /* the unknown dimension is the batch */
    if (n + batch > FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "data \"%s\": %d dimensions, at most %d",
                       like.name, n + batch, FL_MAX_RANK);
    if (batch)
        like.shape.dim[like.shape.rank++] = -1;
    for (int i = 0; i < n; i++)
        like.shape.dim[like.shape.rank++] = dim[i] < 0 ? -1 : dim[i];
    fl_var *v = NULL;
    FL_TRY(fl_block_add_var(fl_program_block(e->net->main, 0), &like, &v));
    fl_emit_return(e, v);
    return FL_OK;
}

/* --- fc --- */

/* The attribute for input i: one for all inputs, or one for each. */
static fl_err attr_at(const fl_emit *e, int i, int n, const fl_param_attr **out)
{
    const fl_arg *attr = fl_arg_get(&e->args, "param_attr");
    *out = attr ? attr->attr : NULL;
    if (!attr || attr->n <= 1)
        return FL_OK;
    if (attr->n != n)
        return fl_fail(FL_EINVAL, "%s: %d parameter attributes for %d inputs",
                       e->args.what, attr->n, n);
    *out = attr->attr + i;
    return FL_OK;
}

static fl_err multiply_input(fl_emit *e, fl_var *x, const fl_param_attr *attr,
                             fl_var **out)
{
    const int64_t flat = fl_arg_int(&e->args, "num_flatten_dims");
    char text[FL_SHAPE_TEXT];
    if (flat < 1 || flat >= x->shape.rank)
        return fl_fail(FL_ESHAPE,
                       "fc: num_flatten_dims is %lld, but input \"%s\" is %s, "
                       "expected 1 to %d",
                       (long long)flat, x->name, fl_shape_text(&x->shape, text),
                       x->shape.rank - 1);
    const fl_shape shape = {2,
                            {fl_shape_span(&x->shape, (int)flat, x->shape.rank),
                             fl_arg_int(&e->args, "size")}};
    fl_var *w = NULL;
    FL_TRY(
        fl_net_param(e->net, attr, e->name, false, x->dtype, &shape, NULL, &w));
    FL_TRY(fl_emit_tmp(e, x->dtype, out));
    fl_desc *d = fl_net_desc(e->net, "mul");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Y", w);
    fl_set_out(d, "Out", *out);
    fl_set_int(d, "x_num_col_dims", flat);
    fl_set_int(d, "y_num_col_dims", 1);
    return fl_net_append(e->net, d);
}

static fl_err add_up_products(fl_emit *e, int n, fl_var *const *parts,
                              fl_var **out)
{
    FL_TRY(fl_emit_tmp(e, parts[0]->dtype, out));
    fl_desc *d = fl_net_desc(e->net, "sum");
    fl_set_ins(d, "X", n, parts);
    fl_set_out(d, "Out", *out);
    return fl_net_append(e->net, d);
}

static fl_err fc(fl_emit *e)
{
    int n = 0;
    fl_var *const *x = fl_arg_vars(&e->args, "input", &n);
    fl_var **part = fl_arena_alloc(e->net->arena, (size_t)n * sizeof *part);
    for (int i = 0; i < n; i++) {
        const fl_param_attr *attr = NULL;
        FL_TRY(attr_at(e, i, n, &attr));
        FL_TRY(multiply_input(e, x[i], attr, &part[i]));
    }
    fl_var *y = part[0];
    if (n > 1)
        FL_TRY(add_up_products(e, n, part, &y));
    FL_TRY(fl_emit_bias(e, (int)fl_arg_int(&e->args, "num_flatten_dims"),
                        y->shape.rank, &y));
    FL_TRY(fl_emit_act(e, &y));
    fl_emit_return(e, y);
    return FL_OK;
}

/* --- embedding --- */

static fl_err embedding(fl_emit *e)
{
    const fl_arg *attr = fl_arg_get(&e->args, "param_attr");
    const fl_arg *padding = fl_arg_get(&e->args, "padding_idx");
    const fl_dtype dtype = fl_arg_dtype(&e->args, "dtype");
    const bool sparse = fl_arg_bool(&e->args, "is_sparse");
    const bool distributed = fl_arg_bool(&e->args, "is_distributed");
    int n = 0;
    const int64_t *size = fl_arg_ints(&e->args, "size", &n);
    if (n != 2)
        return fl_fail(FL_EINVAL, "embedding: size has %d numbers, expected 2",
                       n);
    const fl_shape shape = fl_shape_of(2, size);
    fl_var *w = NULL, *out = NULL;
    FL_TRY(fl_net_param(e->net, attr ? attr->attr : NULL, e->name, false, dtype,
                        &shape, NULL, &w));
    FL_TRY(fl_emit_tmp(e, dtype, &out));
    int64_t pad = padding ? padding->i : -1;
    if (padding && pad < 0)
        pad += size[0];
    fl_desc *d = fl_net_desc(e->net, "lookup_table");
    fl_set_in(d, "W", w);
    fl_set_in(d, "Ids", fl_arg_var(&e->args, "input"));
    fl_set_out(d, "Out", out);
    fl_set_bool(d, "is_sparse", sparse);
    fl_set_bool(d, "is_distributed", distributed);
    fl_set_bool(d, "remote_prefetch", sparse && !distributed);
    fl_set_int(d, "padding_idx", pad);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- dropout --- */

static fl_err dropout(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = NULL, *mask = NULL;
    const fl_arg *given = fl_arg_get(&e->args, "seed");
    int64_t seed = given ? given->i : 0;
    if (!seed)
        seed = e->net->main->random_seed;
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    FL_TRY(fl_emit_stopped(e, FL_U8, &mask));
    fl_desc *d = fl_net_desc(e->net, "dropout");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_out(d, "Mask", mask);
    fl_set_float(d, "dropout_prob", fl_arg_float(&e->args, "dropout_prob"));
    fl_set_bool(d, "is_test", fl_arg_bool(&e->args, "is_test"));
    fl_set_bool(d, "fix_seed", given || seed);
    fl_set_int(d, "seed", seed);
    fl_set_str(d, "dropout_implementation",
               fl_arg_str(&e->args, "dropout_implementation"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

const fl_layer_def fl_layers_basic[] = {
    {
        .name = "data",
        .doc = "Declares a variable that is fed in every run. A batch "
               "dimension of -1 is inserted before shape, unless shape "
               "already has a dimension of -1.",
        .args = {{"name", FL_ARG_STR, .doc = "the name that feeds it"},
                 {"shape", FL_ARG_INTS},
                 {"append_batch_size", FL_ARG_BOOL, "True",
                  .doc = "whether a batch dimension of -1 is inserted before "
                         "shape; not if shape already has a -1"},
                 {"dtype", FL_ARG_DTYPE, "'float32'"},
                 {"lod_level", FL_ARG_INT, "0"},
                 {"type", FL_ARG_INT, "7"},
                 {"stop_gradient", FL_ARG_BOOL, "True"}},
        .emit = data,
    },
    {
        .name = "fc",
        .doc = "A fully connected layer: act(sum over the inputs of input "
               "x weight + bias). The dimensions of an input from "
               "num_flatten_dims on are flattened into one.",
        .args = {{"input", FL_ARG_VARS,
                  .doc = "the input variable, or a list of several"},
                 {"size", FL_ARG_INT},
                 {"num_flatten_dims", FL_ARG_INT, "1"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc =
                      "the name, initialisation and training of the weight, or "
                      "a list with one for each input; None: the defaults"},
                 {"bias_attr", FL_ARG_PARAM, "None"},
                 {"act", FL_ARG_STR, "None"},
                 {"is_test", FL_ARG_BOOL, "False",
                  .doc = "accepted and ignored"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = fc,
    },
    {
        .name = "embedding",
        .doc = "Looks up a row of a learned table for each id of input. "
               "The row of padding_idx is read as zeros.",
        .args = {{"input", FL_ARG_VAR, .doc = "ids, int64 of shape [.., 1]"},
                 {"size", FL_ARG_INTS,
                  .doc = "the number of rows of the table, and the number of "
                         "elements of a row"},
                 {"is_sparse", FL_ARG_BOOL, "False"},
                 {"is_distributed", FL_ARG_BOOL, "False"},
                 {"padding_idx", FL_ARG_INT, "None"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc = "the name, initialisation and training of the table; "
                         "None: the defaults"},
                 {"dtype", FL_ARG_DTYPE, "'float32'"}},
        .emit = embedding,
    },
    {
        .name = "dropout",
        .doc = "Sets elements to zero at random while training, each with "
               "probability dropout_prob.",
        .args = {{"x", FL_ARG_VAR},
                 {"dropout_prob", FL_ARG_FLOAT},
                 {"is_test", FL_ARG_BOOL, "False"},
                 {"seed", FL_ARG_INT, "None",
                  .doc =
                      "the seed of the random numbers, which are then the same "
                      "in every run; None or 0: the program's random seed"},
                 {"name", FL_ARG_STR, "None"},
                 {"dropout_implementation", FL_ARG_STR,
                  "'downgrade_in_infer'"}},
        .emit = dropout,
    },
    {
        .name = "softmax",
        .doc = "Softmax: exp(x) divided by its sum along an axis.",
        .args = {{"input", FL_ARG_VAR},
                 {"use_cudnn", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"},
                 {"axis", FL_ARG_INT, "-1"}},
        .op = "softmax",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
        .map = {{"use_cudnn", NULL}},
    },
    {
        .name = "hard_shrink",
        .doc = "x outside the range from -threshold to threshold, 0 inside it.",
        .args = {{"x", FL_ARG_VAR},
                 {"threshold", FL_ARG_FLOAT, "None",
                  .doc = "the threshold; None: 0.5"}},
        .op = "hard_shrink",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "softshrink",
        .doc = "Soft shrinkage: moves x towards zero by alpha; values "
               "within alpha of zero become zero.",
        .args = {{"x", FL_ARG_VAR},
                 {"alpha", FL_ARG_FLOAT, "None",
                  .doc = "the distance; None: 0.5"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "softshrink",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .map = {{"alpha", "lambda"}},
    },
    {
        .name = "hard_swish",
        .doc = "A piecewise approximation of swish: x * min(max(0, x + "
               "offset), threshold) / scale.",
        .args = {{"x", FL_ARG_VAR},
                 {"threshold", FL_ARG_FLOAT, "6.0"},
                 {"scale", FL_ARG_FLOAT, "6.0",
                  .doc = "the divisor in the formula above"},
                 {"offset", FL_ARG_FLOAT, "3.0"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "hard_swish",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {0},
};
