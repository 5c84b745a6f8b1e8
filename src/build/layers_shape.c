/* SPDX-License-Identifier: Apache-2.0 */
/* layers_shape.c - the same elements in another order or shape. */
#include "build/layer.h"

/* n outputs in `slot`; all of them are returned. */
static fl_err set_parts(fl_emit *e, fl_desc *d, const char *slot, int64_t n,
                        fl_dtype dtype)
{
    if (n < 1 || n > 4096) /* each part is a variable; more of them are probably
                              a mistake */
        return fl_fail(FL_EINVAL, "%s: %lld parts, expected 1 to 4096",
                       e->args.what, (long long)n);
    const char **name = fl_arena_alloc(e->net->arena, (size_t)n * sizeof *name);
    for (int64_t i = 0; i < n; i++) {
        fl_var *out = NULL;
        FL_TRY(fl_emit_tmp(e, dtype, &out));
        fl_emit_return(e, out);
        name[i] = out->name;
    }
    fl_desc_set_out(d, slot, (int)n, name);
    return FL_OK;
}

static fl_err emit_split(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input");
    const fl_arg *parts = fl_arg_get(&e->args, "num_or_sections");
    const int64_t n = parts->n > 0 ? parts->n : parts->i;
    int64_t axis = fl_arg_int(&e->args, "dim");
    if (axis < 0)
        axis += x->shape.rank;
    fl_desc *d = fl_net_desc(e->net, "split");
    fl_set_in(d, "X", x);
    FL_TRY(set_parts(e, d, "Out", n, x->dtype));
    fl_set_int(d, "num", parts->n > 0 ? 0 : n);
    fl_set_ints(d, "sections", parts->n > 0 ? parts->n : 0,
                parts->n > 0 ? parts->ints : NULL);
    fl_set_int(d, "axis", axis);
    return fl_net_append(e->net, d);
}

static fl_err unstack(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x");
    const int64_t axis = fl_arg_int(&e->args, "axis");
    const int64_t at = axis + (axis < 0 ? x->shape.rank : 0);
    int64_t n = fl_arg_int(&e->args, "num");
    if (!n && at >= 0 && at < x->shape.rank)
        n = x->shape.dim[at];
    fl_desc *d = fl_net_desc(e->net, "unstack");
    fl_set_in(d, "X", x);
    FL_TRY(set_parts(e, d, "Y", n, x->dtype));
    fl_set_int(d, "axis", axis);
    fl_set_int(d, "num", n);
    return fl_net_append(e->net, d);
}

static fl_err reshape(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = x, *shape = NULL;
    int n = 0;
    const int64_t *dim = fl_arg_ints(&e->args, "shape", &n);
    if (!fl_arg_bool(&e->args, "inplace"))
        FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    FL_TRY(fl_emit_tmp(e, x->dtype, &shape));
    fl_desc *d = fl_net_desc(e->net, "reshape2");
    fl_set_in(d, "X", x);
    if (fl_arg_given(&e->args, "actual_shape"))
        fl_set_in(d, "Shape", fl_arg_var(&e->args, "actual_shape"));
    fl_set_out(d, "Out", out);
    fl_set_out(d, "XShape", shape);
    fl_set_ints(d, "shape", n, dim);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

const fl_layer_def fl_layers_shape[] = {
    {
        .name = "concat",
        .doc = "Joins variables along an axis.",
        .args = {{"input", FL_ARG_VARS, .doc = "the variables that are joined"},
                 {"axis", FL_ARG_INT, "0"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "concat",
        .in = {{"X", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "split",
        .doc = "Splits input along dim into equal parts, or into parts of "
               "given lengths.",
        .returns = "[parts]",
        .args = {{"input", FL_ARG_VAR},
                 {"num_or_sections", FL_ARG_INT_OR_INTS},
                 {"dim", FL_ARG_INT, "-1"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = emit_split,
    },
    {
        .name = "reshape",
        .doc = "Gives the elements of x another shape.",
        .prefix = "reshape2",
        .args = {{"x", FL_ARG_VAR},
                 {"shape", FL_ARG_INTS,
                  .doc = "the lengths of the dimensions; 0: the length that x "
                         "has; -1: computed from the others"},
                 {"actual_shape", FL_ARG_VAR, "None"},
                 {"act", FL_ARG_STR, "None"},
                 {"inplace", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"}},
        .emit = reshape,
    },
    {
        .name = "transpose",
        .doc = "Reorders dimensions: dimension i of the result is "
               "dimension perm[i] of x.",
        .args = {{"x", FL_ARG_VAR},
                 {"perm", FL_ARG_INTS},
                 {"name", FL_ARG_STR, "None"}},
        .op = "transpose2",
        .in = {{"X", "x"}},
        .out = {{"Out"}, {"XShape", FL_HIDDEN}},
        .map = {{"perm", "axis"}},
    },
    {
        .name = "squeeze",
        .doc = "Removes dimensions of length 1.",
        .args = {{"input", FL_ARG_VAR},
                 {"axes", FL_ARG_INTS,
                  .doc =
                      "the dimensions that are removed; []: all of length 1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "squeeze2",
        .in = {{"X", "input"}},
        .out = {{"Out"}, {"XShape", FL_HIDDEN}},
    },
    {
        .name = "unsqueeze",
        .doc = "Inserts dimensions of length 1 at axes.",
        .args = {{"input", FL_ARG_VAR},
                 {"axes", FL_ARG_INTS,
                  .doc = "the positions of the new dimensions in the result"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "unsqueeze2",
        .in = {{"X", "input"}},
        .out = {{"Out"}, {"XShape", FL_HIDDEN}},
    },
    {
        .name = "flatten",
        .doc = "Flattens x into a matrix: the dimensions before axis "
               "become its rows, the others its columns.",
        .args = {{"x", FL_ARG_VAR},
                 {"axis", FL_ARG_INT, "1",
                  .doc = "the first dimension that belongs to the columns"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "flatten2",
        .in = {{"X", "x"}},
        .out = {{"Out"}, {"XShape", FL_HIDDEN}},
    },
    {
        .name = "stack",
        .doc = "Joins variables of equal shape along a new axis.",
        .args = {{"x", FL_ARG_VARS, .doc = "the variables that are joined"},
                 {"axis", FL_ARG_INT, "0",
                  .doc = "the position of the new dimension; a negative one "
                         "counts from the last"}},
        .op = "stack",
        .in = {{"X", "x"}},
        .out = {{"Y"}},
    },
    {
        .name = "unstack",
        .doc = "Splits x into its slices along an axis.",
        .returns = "[parts]",
        .args = {{"x", FL_ARG_VAR},
                 {"axis", FL_ARG_INT, "0"},
                 {"num", FL_ARG_INT, "None"}},
        .emit = unstack,
    },
    {
        .name = "multiplex",
        .doc = "Selects rows: row i of the result is row i of input number "
               "index[i].",
        .args =
            {{"inputs", FL_ARG_VARS},
             {"index", FL_ARG_VAR,
              .doc =
                  "for each row the number of an input, of shape [rows, 1]"}},
        .op = "multiplex",
        .in = {{"X", "inputs"}, {"Ids", "index"}},
        .out = {{"Out"}},
    },
    {
        .name = "scatter",
        .doc = "Replaces row index[i] of input by row i of updates."
               "",
        .args = {{"input", FL_ARG_VAR},
                 {"index", FL_ARG_VAR,
                  .doc = "the numbers of the rows that are replaced"},
                 {"updates", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"},
                 {"overwrite", FL_ARG_BOOL, "True"}},
        .op = "scatter",
        .in = {{"X", "input"}, {"Ids", "index"}, {"Updates", "updates"}},
        .out = {{"Out"}},
    },
    {
        .name = "crop",
        .doc = "Copies a part of x with the given shape, from offsets on.",
        .args = {{"x", FL_ARG_VAR},
                 {"shape", FL_ARG_INTS, "None",
                  .doc = "the lengths of the part; -1: up to the end of the "
                         "dimension"},
                 {"offsets", FL_ARG_INTS, "None"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "crop",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "pad_constant_like",
        .doc = "Appends pad_value to y along every dimension until it has "
               "the shape of x.",
        .args = {{"x", FL_ARG_VAR, .doc = "the variable whose shape is used"},
                 {"y", FL_ARG_VAR, .doc = "the variable that is padded"},
                 {"pad_value", FL_ARG_FLOAT, "0.0"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "pad_constant_like",
        .in = {{"X", "x"}, {"Y", "y"}},
        .out = {{"Out"}},
    },
    {
        .name = "slice",
        .doc = "Copies the range from starts to ends, without the end, "
               "along each of axes.",
        .args = {{"input", FL_ARG_VAR},
                 {"axes", FL_ARG_INTS},
                 {"starts", FL_ARG_INTS},
                 {"ends", FL_ARG_INTS}},
        .op = "slice",
        .in = {{"Input", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "reverse",
        .doc = "Reverses the order of elements along one or several "
               "dimensions.",
        .args = {{"x", FL_ARG_VAR},
                 {"axis", FL_ARG_INTS,
                  .doc = "the dimensions that are reversed"}},
        .op = "reverse",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "gather",
        .doc = "Copies rows of input: row i of the result is row index[i] "
               "of input.",
        .args = {{"input", FL_ARG_VAR},
                 {"index", FL_ARG_VAR, .doc = "the row numbers"}},
        .op = "gather",
        .in = {{"X", "input"}, {"Index", "index"}},
        .out = {{"Out"}},
    },
    {
        .name = "expand",
        .doc = "Repeats x expand_times[i] times along dimension i.",
        .args = {{"x", FL_ARG_VAR, .doc = "the variable that is repeated"},
                 {"expand_times", FL_ARG_INTS},
                 {"name", FL_ARG_STR, "None"}},
        .op = "expand",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "one_hot",
        .doc = "Converts each id to a row of depth numbers: 1 at the "
               "index of the id, 0 elsewhere.",
        .args = {{"input", FL_ARG_VAR, .doc = "ids, int64 of shape [.., 1]"},
                 {"depth", FL_ARG_INT}},
        .op = "one_hot",
        .in = {{"X", "input"}},
        .out = {{"Out", FL_STOP}},
    },
    {
        .name = "shape",
        .doc = "The shape of input, as an int32 variable.",
        .args = {{"input", FL_ARG_VAR}},
        .op = "shape",
        .in = {{"Input", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "size",
        .doc = "The number of elements of input, as a variable.",
        .args = {{"input", FL_ARG_VAR}},
        .op = "size",
        .in = {{"Input", "input"}},
        .out = {{"Out"}},
    },
    {
        .name = "pad",
        .doc = "Surrounds x with pad_value: paddings[2i] elements before "
               "and paddings[2i+1] after it along dimension i.",
        .args = {{"x", FL_ARG_VAR},
                 {"paddings", FL_ARG_INTS},
                 {"pad_value", FL_ARG_FLOAT, "0.0"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "pad",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {0},
};
