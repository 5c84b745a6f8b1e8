/* SPDX-License-Identifier: Apache-2.0 */
/* layers_click.c - layers of click models. */
#include "build/layer.h"

/* --- data_norm --- */

/* A running summary of all data. It starts as if 10,000 rows had been seen,
 * with mean 0 and standard deviation 1; param_attr may give other initial
 * values. */
static fl_err add_summary(fl_emit *e, int i, fl_var **out)
{
    static const struct {
        const char *name;
        fl_init start;
    } kinds[] = {{"batch_size", {"constant", .a = 1e4}},
                 {"batch_sum", {"constant"}},
                 {"batch_square_sum", {"constant", .a = 1e4}}};
    const fl_var *x = fl_arg_var(&e->args, "input");
    const fl_arg *given = fl_arg_get(&e->args, "param_attr");
    const fl_shape shape = {1, {x->shape.dim[x->shape.rank - 1]}};
    fl_param_attr attr = {
        .name = fl_arena_printf(e->net->arena, "%s.%s", e->name, kinds[i].name),
        .init = &kinds[i].start,
        .summary = true,
    };
    if (given && given->n == 3 && given->attr[i].init)
        attr.init = given->attr[i].init;
    return fl_net_param(e->net, &attr, e->name, false, x->dtype, &shape, NULL,
                        out);
}

/* in_place is a hint that is ignored, because the gradient needs the input. */
static fl_err data_norm(fl_emit *e)
{
    static const char *const slots[] = {"BatchSize", "BatchSum",
                                        "BatchSquareSum"};
    fl_var *x = fl_arg_var(&e->args, "input"), *summary[3] = {0};
    fl_var *mean = NULL, *scale = NULL, *out = NULL;
    char text[FL_SHAPE_TEXT];
    if (x->shape.rank != 2)
        return fl_fail(FL_ESHAPE,
                       "data_norm: input \"%s\" is %s, expected "
                       "[N,C]",
                       x->name, fl_shape_text(&x->shape, text));
    for (int i = 0; i < 3; i++)
        FL_TRY(add_summary(e, i, &summary[i]));
    FL_TRY(fl_emit_stopped(e, x->dtype, &mean));
    FL_TRY(fl_emit_stopped(e, x->dtype, &scale));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "data_norm");
    fl_set_in(d, "X", x);
    for (int i = 0; i < 3; i++)
        fl_set_in(d, slots[i], summary[i]);
    fl_set_out(d, "Y", out);
    fl_set_out(d, "Means", mean);
    fl_set_out(d, "Scales", scale);
    fl_set_float(d, "epsilon", fl_arg_float(&e->args, "epsilon"));
    fl_set_bool(d, "use_mkldnn", false);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_act(e, &out));
    fl_emit_return(e, out);
    return FL_OK;
}

const fl_layer_def fl_layers_click[] = {
    {
        .name = "continuous_value_model",
        .doc = "Replaces the first two columns of input, shows and clicks, "
               "by logarithms, or removes them. The "
               "gradient of these columns is cvm.",
        .prefix = "cvm",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "rows whose first two columns are shows and clicks"},
                 {"cvm", FL_ARG_VAR},
                 {"use_cvm", FL_ARG_BOOL, "True"}},
        .op = "cvm",
        .in = {{"X", "input"}, {"CVM", "cvm"}},
        .out = {{"Y"}},
    },
    {
        .name = "data_norm",
        .doc = "Normalises each column with the mean and deviation of all "
               "data seen so far. The sums are parameters NAME.batch_size, "
               "NAME.batch_sum and NAME.batch_square_sum, which training "
               "updates.",
        .args = {{"input", FL_ARG_VAR},
                 {"act", FL_ARG_STR, "None"},
                 {"epsilon", FL_ARG_FLOAT, "1e-05",
                  .doc = "the number that each row adds to the sums of "
                         "squares, 0 to 0.001"},
                 {"param_attr", FL_ARG_PARAM, "None",
                  .doc = "the initial values of batch_size, batch_sum and "
                         "batch_square_sum; None: 10,000 rows with mean 0 and "
                         "variance 1"},
                 {"data_layout", FL_ARG_STR, "'NCHW'",
                  .doc = "accepted and ignored: the input has two dimensions"},
                 {"in_place", FL_ARG_BOOL, "False",
                  .doc = "accepted and ignored"},
                 {"use_mkldnn", FL_ARG_BOOL, "False"},
                 {"name", FL_ARG_STR, "None"},
                 {"moving_mean_name", FL_ARG_STR, "None",
                  .doc = "accepted and ignored"},
                 {"moving_variance_name", FL_ARG_STR, "None",
                  .doc = "accepted and ignored"},
                 {"do_model_average_for_mean_and_var", FL_ARG_BOOL, "False",
                  .doc = "accepted and ignored"}},
        .emit = data_norm,
    },
    {
        .name = "hash",
        .doc = "Computes num_hash ids below hash_size for each row by "
               "hashing the ids of the row.",
        .args = {{"input", FL_ARG_VAR, .doc = "rows of ids, int32 or int64"},
                 {"hash_size", FL_ARG_INT},
                 {"num_hash", FL_ARG_INT, "1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "hash",
        .in = {{"X", "input"}},
        .out = {{"Out", FL_STOP}},
        .map = {{"hash_size", "mod_by"}},
    },
    {
        .name = "teacher_student_sigmoid_loss",
        .doc = "The cross entropy of sigmoid(input) with a click and with "
               "the score of a teacher. The label encodes both: -2 is no "
               "click and -1 a click without a score of the teacher; p is no "
               "click and 1 + p a click with the score p, 0 to 1.",
        .args = {{"input", FL_ARG_VAR, .doc = "scores before the sigmoid"},
                 {"label", FL_ARG_VAR,
                  .doc = "the click and the score of the teacher, as above"},
                 {"soft_max_up_bound", FL_ARG_FLOAT, "15.0"},
                 {"soft_max_lower_bound", FL_ARG_FLOAT, "-15.0"}},
        .op = "teacher_student_sigmoid_loss",
        .in = {{"X", "input"}, {"Label", "label"}},
        .out = {{"Y"}},
    },
    {0},
};
