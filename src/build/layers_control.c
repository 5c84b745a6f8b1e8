/* SPDX-License-Identifier: Apache-2.0 */
/* layers_control.c - counters, conditions, and printing a value. */
#include "build/layer.h"

static fl_err increment(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = x;
    if (!fl_arg_bool(&e->args, "in_place"))
        FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "increment");
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    fl_set_float(d, "step", fl_arg_float(&e->args, "value"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* The op is inserted at the beginning of the program, so all other ops see the
 * number of this step. A second call with the same name returns the same
 * counter. */
static fl_err step_counter(fl_emit *e)
{
    fl_net *n = e->net;
    const char *name = fl_arg_str(&e->args, "counter_name");
    const fl_init init = {"constant",
                          .a = (double)fl_arg_int(&e->args, "begin") - 1};
    const fl_shape one = {1, {1}};
    const int block = n->block;
    if (!name)
        name = "@STEP_COUNTER@";
    fl_var *v = fl_block_var(fl_program_block(n->main, 0), name);
    if (v) {
        fl_emit_return(e, v);
        return FL_OK;
    }
    FL_TRY(fl_net_global(n, name, FL_I64, &one, &init, &v));
    v->stop_gradient = true;
    fl_desc *d = fl_net_desc(n, "increment");
    fl_set_in(d, "X", v);
    fl_set_out(d, "Out", v);
    fl_set_float(d, "step", (double)fl_arg_int(&e->args, "step"));
    n->block = 0;
    const fl_err err = fl_net_insert(n, 0, d);
    n->block = block;
    fl_emit_return(e, v);
    return err;
}

static fl_err emit_print(fl_emit *e)
{
    static const char *const flags[] = {
        "print_tensor_name", "print_tensor_type", "print_tensor_shape",
        "print_tensor_lod"};
    const char *message = fl_arg_str(&e->args, "message");
    fl_var *x = fl_arg_var(&e->args, "input"), *out = NULL;
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "print");
    fl_set_in(d, "In", x);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "first_n", fl_arg_int(&e->args, "first_n"));
    fl_set_int(d, "summarize", fl_arg_int(&e->args, "summarize"));
    fl_set_str(d, "message", message ? message : "");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        fl_set_bool(d, flags[i], fl_arg_bool(&e->args, flags[i]));
    fl_set_upper(d, "print_phase", fl_arg_str(&e->args, "print_phase"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

const fl_layer_def fl_layers_control[] = {
    {
        .name = "increment",
        .doc = "Computes x + value.",
        .args = {{"x", FL_ARG_VAR},
                 {"value", FL_ARG_FLOAT, "1.0",
                  .doc = "the number that is added"},
                 {"in_place", FL_ARG_BOOL, "True",
                  .doc = "whether x itself gets the result"}},
        .emit = increment,
    },
    {
        .name = "autoincreased_step_counter",
        .doc = "A counter that every run increases by step before all "
               "other operators. It is begin in the first run.",
        .prefix = "global_step_counter",
        .args = {{"counter_name", FL_ARG_STR, "None"},
                 {"begin", FL_ARG_INT, "1"},
                 {"step", FL_ARG_INT, "1",
                  .doc = "the number that each run adds"}},
        .emit = step_counter,
    },
    {
        .name = "is_empty",
        .doc = "Whether x has no elements.",
        .args = {{"x", FL_ARG_VAR}, {"cond", FL_ARG_VAR, "None"}},
        .op = "is_empty",
        .in = {{"X", "x"}},
        .out = {{"Out", FL_STOP}},
        .into = "cond",
    },
    {
        .name = "isfinite",
        .doc = "Whether all elements are finite numbers.",
        .args = {{"x", FL_ARG_VAR}},
        .op = "isfinite",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "Print",
        .doc = "Returns its input, and prints its value to stderr in every "
               "run.",
        .prefix = "print",
        .args = {{"input", FL_ARG_VAR},
                 {"first_n", FL_ARG_INT, "-1"},
                 {"message", FL_ARG_STR, "None"},
                 {"summarize", FL_ARG_INT, "-1"},
                 {"print_tensor_name", FL_ARG_BOOL, "True"},
                 {"print_tensor_type", FL_ARG_BOOL, "True"},
                 {"print_tensor_shape", FL_ARG_BOOL, "True"},
                 {"print_tensor_lod", FL_ARG_BOOL, "True"},
                 {"print_phase", FL_ARG_STR, "'both'"}},
        .emit = emit_print,
    },
    {0},
};
