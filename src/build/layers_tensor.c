/* SPDX-License-Identifier: Apache-2.0 */
/* layers_tensor.c - layers that create, fill, copy and convert variables. */
#include "build/layer.h"

static fl_err cast(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = NULL;
    const fl_dtype dtype = fl_arg_dtype(&e->args, "dtype");
    FL_TRY(fl_emit_tmp(e, dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "cast");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "in_dtype", x->dtype);
    fl_set_int(d, "out_dtype", dtype);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- assign --- */

/* An array's elements become an attribute of the op. */
static fl_err set_array(fl_desc *d, const fl_tensor *t)
{
    if (t->dtype != FL_F32 && t->dtype != FL_I32)
        return fl_fail(FL_EINVAL,
                       "assign: the array is %s, expected f32 or i32",
                       fl_dtype_name(t->dtype));
    return fl_set_values(d, "assign", t, t->dtype);
}

static fl_err assign(fl_emit *e)
{
    const fl_arg *in = fl_arg_get(&e->args, "input");
    fl_var *out = fl_arg_var(&e->args, "output");
    fl_desc *d = fl_net_desc(e->net, in->n ? "assign_value" : "assign");
    if (in->n)
        FL_TRY(set_array(d, in->tensor));
    else
        fl_set_in(d, "X", in->var);
    if (!out)
        FL_TRY(
            fl_emit_tmp(e, in->n ? in->tensor->dtype : in->var->dtype, &out));
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* zeros and ones are fill_constant ops, and their instances are named after
 * that. */
static fl_err emit_fill(fl_emit *e, double value)
{
    fl_arg shape = *fl_arg_get(&e->args, "shape");
    shape.name = "shape";
    if (!shape.n)
        shape.n = -1;
    fl_var *out = NULL;
    FL_TRY(fl_layer_get(
        e->net, "fill_constant",
        (fl_arg[]){shape,
                   {"dtype", .i = fl_arg_dtype(&e->args, "dtype")},
                   {"value", .f = value},
                   {"force_cpu", .b = fl_arg_bool(&e->args, "force_cpu")},
                   {0}},
        &out));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err zeros(fl_emit *e)
{
    return emit_fill(e, 0);
}

static fl_err ones(fl_emit *e)
{
    return emit_fill(e, 1);
}

/* --- numbers in a row --- */

/* An argument that is a number becomes a variable. */
static fl_err set_number(fl_emit *e, const char *arg, bool whole,
                         fl_dtype dtype, fl_desc *d, const char *slot)
{
    const fl_arg *given = fl_arg_get(&e->args, arg);
    fl_var *v = given->var;
    if (!given->n)
        FL_TRY(fl_layer_get(
            e->net, "fill_constant",
            (fl_arg[]){{"shape", .i = 1},
                       {"dtype", .i = dtype},
                       {"value", .f = whole ? (double)given->i : given->f},
                       {0}},
            &v));
    fl_set_in(d, slot, v);
    return FL_OK;
}

static fl_err finish_row(fl_emit *e, fl_desc *d, fl_dtype dtype)
{
    fl_var *out = NULL;
    FL_TRY(fl_emit_stopped(e, dtype, &out));
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err range(fl_emit *e)
{
    const fl_dtype dtype = fl_arg_dtype(&e->args, "dtype");
    fl_desc *d = fl_net_desc(e->net, "range");
    FL_TRY(set_number(e, "start", false, dtype, d, "Start"));
    FL_TRY(set_number(e, "end", false, dtype, d, "End"));
    FL_TRY(set_number(e, "step", false, dtype, d, "Step"));
    return finish_row(e, d, dtype);
}

static fl_err linspace(fl_emit *e)
{
    const fl_dtype dtype = fl_arg_dtype(&e->args, "dtype");
    fl_desc *d = fl_net_desc(e->net, "linspace");
    FL_TRY(set_number(e, "start", false, dtype, d, "Start"));
    FL_TRY(set_number(e, "stop", false, dtype, d, "Stop"));
    FL_TRY(set_number(e, "num", true, FL_I32, d, "Num"));
    return finish_row(e, d, dtype);
}

static fl_err rank(fl_emit *e)
{
    const int32_t dims = fl_arg_var(&e->args, "input")->shape.rank;
    const fl_shape one = {1, {1}};
    const fl_tensor t = fl_tensor_view(FL_I32, &one, &dims);
    fl_var *out = NULL;
    FL_TRY(fl_layer_get(e->net, "assign",
                        (fl_arg[]){{"input", .n = 1, .tensor = &t}, {0}},
                        &out));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- variables --- */

static fl_err create_tensor(fl_emit *e)
{
    fl_var *v = NULL;
    FL_TRY(fl_block_add_var(
        fl_net_block(e->net),
        &(fl_var){.name = e->name,
                  .dtype = fl_arg_dtype(&e->args, "dtype"),
                  .persistable = fl_arg_bool(&e->args, "persistable")},
        &v));
    fl_emit_return(e, v);
    return FL_OK;
}

static fl_err get_shape(const fl_emit *e, fl_shape *out)
{
    int n = 0;
    const int64_t *dim = fl_arg_ints(&e->args, "shape", &n);
    if (n > FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: %d dimensions, at most %d", e->args.what,
                       n, FL_MAX_RANK);
    *out = fl_shape_of(n, dim);
    return FL_OK;
}

static fl_err create_parameter(fl_emit *e)
{
    const fl_arg *attr = fl_arg_get(&e->args, "attr");
    const fl_param_attr named = {.name = fl_arg_str(&e->args, "name")};
    const fl_arg *init = fl_arg_get(&e->args, "default_initializer");
    fl_shape shape;
    fl_var *v = NULL;
    FL_TRY(get_shape(e, &shape));
    FL_TRY(fl_net_param(e->net, attr ? attr->attr : &named, e->name,
                        fl_arg_bool(&e->args, "is_bias"),
                        fl_arg_dtype(&e->args, "dtype"), &shape,
                        init ? init->init : NULL, &v));
    fl_emit_return(e, v);
    return FL_OK;
}

static fl_err create_global_var(fl_emit *e)
{
    const fl_init init = {"constant", .a = fl_arg_float(&e->args, "value")};
    const char *name = fl_arg_str(&e->args, "name");
    fl_shape shape;
    fl_var *v = NULL;
    FL_TRY(get_shape(e, &shape));
    if (!name)
        name =
            fl_names_generate(e->net->names, e->net->arena, "_generated_var");
    FL_TRY(fl_net_global(e->net, name, fl_arg_dtype(&e->args, "dtype"), &shape,
                         &init, &v));
    v->persistable = fl_arg_bool(&e->args, "persistable");
    v->stop_gradient = true;
    fl_var_touch(v);
    fl_emit_return(e, v);
    return FL_OK;
}

const fl_layer_def fl_layers_tensor[] = {
    {
        .name = "cast",
        .doc = "Converts the elements of x to dtype.",
        .args = {{"x", FL_ARG_VAR},
                 {"dtype", FL_ARG_DTYPE,
                  .doc = "the new type of the elements, for example 'float32' "
                         "or 'int64'"}},
        .emit = cast,
    },
    {
        .name = "assign",
        .doc = "Copies a variable or an array to a variable.",
        .args = {{"input", FL_ARG_VAR_OR_TENSOR,
                  .doc = "the variable, or an array of float32 or int32"},
                 {"output", FL_ARG_VAR, "None"}},
        .emit = assign,
    },
    {
        .name = "fill_constant",
        .doc = "Makes a variable whose elements all have one value.",
        .args = {{"shape", FL_ARG_INTS},
                 {"dtype", FL_ARG_DTYPE},
                 {"value", FL_ARG_FLOAT},
                 {"force_cpu", FL_ARG_BOOL, "False"},
                 {"out", FL_ARG_VAR, "None"}},
        .op = "fill_constant",
        .out = {{"Out", FL_STOP}},
        .into = "out",
    },
    {
        .name = "fill_constant_batch_size_like",
        .doc = "Makes a variable whose elements all have one value, and "
               "whose dimension output_dim_idx has the length of dimension "
               "input_dim_idx of input.",
        .args = {{"input", FL_ARG_VAR},
                 {"shape", FL_ARG_INTS,
                  .doc = "the lengths of the dimensions; that of "
                         "output_dim_idx is ignored"},
                 {"dtype", FL_ARG_DTYPE},
                 {"value", FL_ARG_FLOAT},
                 {"input_dim_idx", FL_ARG_INT, "0"},
                 {"output_dim_idx", FL_ARG_INT, "0"}},
        .op = "fill_constant_batch_size_like",
        .in = {{"Input", "input"}},
        .out = {{"Out", FL_STOP}},
    },
    {
        .name = "zeros",
        .doc = "Makes a variable of zeros.",
        .prefix = "",
        .args = {{"shape", FL_ARG_INTS},
                 {"dtype", FL_ARG_DTYPE},
                 {"force_cpu", FL_ARG_BOOL, "False"}},
        .emit = zeros,
    },
    {
        .name = "ones",
        .doc = "Makes a variable of ones.",
        .prefix = "",
        .args = {{"shape", FL_ARG_INTS},
                 {"dtype", FL_ARG_DTYPE},
                 {"force_cpu", FL_ARG_BOOL, "False"}},
        .emit = ones,
    },
    {
        .name = "zeros_like",
        .doc = "Makes zeros with the shape of x.",
        .args = {{"x", FL_ARG_VAR}, {"out", FL_ARG_VAR, "None"}},
        .op = "fill_zeros_like",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}},
        .into = "out",
    },
    {
        .name = "uniform_random",
        .doc = "Draws random numbers with a uniform distribution from min to "
               "max.",
        .args = {{"shape", FL_ARG_INTS},
                 {"dtype", FL_ARG_DTYPE, "'float32'"},
                 {"min", FL_ARG_FLOAT, "-1.0"},
                 {"max", FL_ARG_FLOAT, "1.0"},
                 {"seed", FL_ARG_INT, "0"}},
        .op = "uniform_random",
        .out = {{"Out"}},
    },
    {
        .name = "gaussian_random",
        .doc = "Draws random numbers with a normal distribution.",
        .args = {{"shape", FL_ARG_INTS},
                 {"mean", FL_ARG_FLOAT, "0.0"},
                 {"std", FL_ARG_FLOAT, "1.0"},
                 {"seed", FL_ARG_INT, "0"},
                 {"dtype", FL_ARG_DTYPE, "'float32'"}},
        .op = "gaussian_random",
        .out = {{"Out"}},
    },
    {
        .name = "uniform_random_batch_size_like",
        .doc = "Draws uniform random numbers in a shape whose dimension "
               "output_dim_idx has the length of dimension input_dim_idx "
               "of input.",
        .args = {{"input", FL_ARG_VAR},
                 {"shape", FL_ARG_INTS,
                  .doc = "the lengths of the dimensions; that of "
                         "output_dim_idx is ignored"},
                 {"dtype", FL_ARG_DTYPE, "'float32'"},
                 {"input_dim_idx", FL_ARG_INT, "0"},
                 {"output_dim_idx", FL_ARG_INT, "0"},
                 {"min", FL_ARG_FLOAT, "-1.0"},
                 {"max", FL_ARG_FLOAT, "1.0"},
                 {"seed", FL_ARG_INT, "0"}},
        .op = "uniform_random_batch_size_like",
        .in = {{"Input", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "gaussian_random_batch_size_like",
        .doc = "Draws normal random numbers in a shape whose dimension "
               "output_dim_idx has the length of dimension input_dim_idx "
               "of input.",
        .args = {{"input", FL_ARG_VAR},
                 {"shape", FL_ARG_INTS,
                  .doc = "the lengths of the dimensions; that of "
                         "output_dim_idx is ignored"},
                 {"input_dim_idx", FL_ARG_INT, "0"},
                 {"output_dim_idx", FL_ARG_INT, "0"},
                 {"mean", FL_ARG_FLOAT, "0.0"},
                 {"std", FL_ARG_FLOAT, "1.0"},
                 {"seed", FL_ARG_INT, "0"},
                 {"dtype", FL_ARG_DTYPE, "'float32'"}},
        .op = "gaussian_random_batch_size_like",
        .in = {{"Input", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "sampling_id",
        .doc = "Draws a class for each row, with the probabilities of the "
               "row. The result is int64.",
        .args = {{"x", FL_ARG_VAR,
                  .doc = "probabilities of the classes, a row for each sample"},
                 {"min", FL_ARG_FLOAT, "0.0",
                  .doc = "the lower bound of the random number that selects "
                         "the class"},
                 {"max", FL_ARG_FLOAT, "1.0",
                  .doc = "the upper bound of the random number that selects "
                         "the class"},
                 {"seed", FL_ARG_INT, "0"},
                 {"dtype", FL_ARG_DTYPE, "'float32'",
                  .doc = "accepted and ignored"}},
        .op = "sampling_id",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}},
        .map = {{"dtype", NULL}},
    },
    {
        .name = "create_tensor",
        .doc = "Makes an empty variable for operators to write.",
        .args = {{"dtype", FL_ARG_DTYPE},
                 {"name", FL_ARG_STR, "None"},
                 {"persistable", FL_ARG_BOOL, "False"}},
        .emit = create_tensor,
    },
    {
        .name = "create_parameter",
        .doc = "Makes a parameter outside of any layer.",
        .args = {{"shape", FL_ARG_INTS},
                 {"dtype", FL_ARG_DTYPE},
                 {"name", FL_ARG_STR, "None"},
                 {"attr", FL_ARG_PARAM, "None"},
                 {"is_bias", FL_ARG_BOOL, "False"},
                 {"default_initializer", FL_ARG_INIT, "None"}},
        .emit = create_parameter,
    },
    {
        .name = "create_global_var",
        .doc = "Makes a variable that the startup program initialises with "
               "value.",
        .prefix = "global_var",
        .args = {{"shape", FL_ARG_INTS},
                 {"value", FL_ARG_FLOAT},
                 {"dtype", FL_ARG_DTYPE},
                 {"persistable", FL_ARG_BOOL, "False"},
                 {"force_cpu", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = create_global_var,
    },
    {
        .name = "argmax",
        .doc = "The index of the largest element along an axis.",
        .prefix = "arg_max",
        .args = {{"x", FL_ARG_VAR}, {"axis", FL_ARG_INT, "0"}},
        .op = "arg_max",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "argmin",
        .doc = "The index of the smallest element along an axis.",
        .prefix = "arg_min",
        .args = {{"x", FL_ARG_VAR}, {"axis", FL_ARG_INT, "0"}},
        .op = "arg_min",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "argsort",
        .doc = "Sorts input along an axis in ascending order, and returns "
               "the index that each element had.",
        .returns = "out, ids",
        .args = {{"input", FL_ARG_VAR},
                 {"axis", FL_ARG_INT, "-1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "argsort",
        .in = {{"X", "input"}},
        .out = {{"Out", FL_STOP}, {"Indices", FL_STOP}},
    },
    {
        .name = "range",
        .doc = "The numbers start, start + step and so on, without end."
               "",
        .args = {{"start", FL_ARG_FLOAT_OR_VAR},
                 {"end", FL_ARG_FLOAT_OR_VAR},
                 {"step", FL_ARG_FLOAT_OR_VAR},
                 {"dtype", FL_ARG_DTYPE}},
        .emit = range,
    },
    {
        .name = "linspace",
        .doc = "num numbers from start to stop in equal steps.",
        .args = {{"start", FL_ARG_FLOAT_OR_VAR},
                 {"stop", FL_ARG_FLOAT_OR_VAR},
                 {"num", FL_ARG_INT_OR_VAR, .doc = "the number of numbers"},
                 {"dtype", FL_ARG_DTYPE}},
        .emit = linspace,
    },
    {
        .name = "rank",
        .doc = "The number of dimensions of input, as an int32 variable."
               "",
        .prefix = "",
        .args = {{"input", FL_ARG_VAR}},
        .emit = rank,
    },
    {
        .name = "where",
        .doc = "The indices of all elements of condition that are true, one "
               "row for each.",
        .args = {{"condition", FL_ARG_VAR}},
        .op = "where",
        .in = {{"Condition", "condition"}},
        .out = {{"Out", FL_STOP}},
    },
    {
        .name = "unique",
        .doc = "The distinct elements of a vector, and for each element "
               "of x its index among them.",
        .returns = "out, index",
        .args = {{"x", FL_ARG_VAR},
                 {"dtype", FL_ARG_DTYPE, "'int32'",
                  .doc = "the type of the indices: 'int32' or 'int64'"}},
        .op = "unique",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}, {"Index", FL_STOP}},
    },
    {
        .name = "unique_with_counts",
        .doc = "The distinct elements of a vector, for each element its "
               "index among them, and how often each occurs.",
        .returns = "out, index, count",
        .args =
            {{"x", FL_ARG_VAR},
             {"dtype", FL_ARG_DTYPE, "'int32'",
              .doc = "the type of the indices and counts: 'int32' or 'int64'"}},
        .op = "unique_with_counts",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}, {"Index", FL_STOP}, {"Count", FL_STOP}},
    },
    {
        .name = "has_inf",
        .doc = "Whether any element is infinite.",
        .prefix = "isinf",
        .args = {{"x", FL_ARG_VAR}},
        .op = "isinf",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}},
    },
    {
        .name = "has_nan",
        .doc = "Whether any element is NaN.",
        .prefix = "isnan",
        .args = {{"x", FL_ARG_VAR}},
        .op = "isnan",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}},
    },
    {0},
};
