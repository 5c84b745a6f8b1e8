/* SPDX-License-Identifier: Apache-2.0 */
/* layers_collective.c - calls that all ranks of a job without servers make
 * together. Their names begin with an underscore, as in Fluid: transpilers
 * insert the operators, and few scripts call them. */
#include "build/layer.h"

#include <string.h>

#define RING                                                                   \
    {                                                                          \
        "ring_id", FL_ARG_INT, "0",                                            \
            .doc = "the number of the ring, as in c_comm_init"                 \
    }
#define STREAM                                                                 \
    {                                                                          \
        "use_calc_stream", FL_ARG_BOOL, "False",                               \
            .doc = "whether to wait for the result in this operator"           \
    }
#define RANKS                                                                  \
    {                                                                          \
        "nranks", FL_ARG_INT, .doc = "the number of ranks"                     \
    }
#define HOW                                                                    \
    {                                                                          \
        "reduce_type", FL_ARG_STR, "'sum'",                                    \
            .doc = "'sum', 'prod', 'max' or 'min'"                             \
    }

/* In the order of their numbers in the operator allreduce. */
static const char *const hows[] = {"sum", "prod", "max", "min"};

static fl_err find_how(const fl_emit *e, int *out)
{
    const char *how = fl_arg_str(&e->args, "reduce_type");
    for (*out = 0; *out < 4; (*out)++)
        if (!strcmp(hows[*out], how))
            return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s: reduce_type is \"%s\", expected \"sum\", \"prod\", "
                   "\"max\" or \"min\"",
                   e->def->name, how);
}

/* From x to `out`, or to a new variable. */
static fl_err emit_reduce(fl_emit *e, fl_desc *d)
{
    fl_var *x = fl_arg_var(&e->args, "x"), *out = fl_arg_var(&e->args, "out");
    if (!out)
        FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err emit_allreduce(fl_emit *e)
{
    int how;
    fl_desc *d = fl_net_desc(e->net, "allreduce");
    FL_TRY(find_how(e, &how));
    fl_set_int(d, "reduce_type", how);
    fl_set_bool(d, "sync_mode", fl_arg_bool(&e->args, "sync_mode"));
    return emit_reduce(e, d);
}

static fl_err emit_c_allreduce(fl_emit *e)
{
    int how;
    FL_TRY(find_how(e, &how));
    fl_desc *d = fl_net_desc(
        e->net, fl_arena_printf(e->net->arena, "c_allreduce_%s", hows[how]));
    fl_set_int(d, "ring_id", fl_arg_int(&e->args, "ring_id"));
    fl_set_bool(d, "use_calc_stream", fl_arg_bool(&e->args, "use_calc_stream"));
    return emit_reduce(e, d);
}

const fl_layer_def fl_layers_collective[] = {
    {
        .name = "_allreduce",
        .doc = "The sum (product, maximum, minimum) of x of all ranks, "
               "element by element.",
        .args =
            {{"x", FL_ARG_VAR},
             {"out", FL_ARG_VAR, "None"},
             HOW,
             {"sync_mode", FL_ARG_BOOL, "False",
              .doc =
                  "accepted and ignored: the operator waits for the result"}},
        .prefix = "allreduce",
        .emit = emit_allreduce,
    },
    {
        .name = "_broadcast",
        .doc = "Copies x of rank root to x of all ranks.",
        .args =
            {{"x", FL_ARG_VAR},
             {"root", FL_ARG_INT, .doc = "the rank whose values are copied"},
             {"sync_mode", FL_ARG_BOOL, "False",
              .doc =
                  "accepted and ignored: the operator waits for the result"}},
        .op = "broadcast",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .into = "x",
    },
    {
        .name = "_c_allreduce",
        .doc =
            "The sum (product, maximum, minimum) of x of all ranks, "
            "element by element. Unless use_calc_stream is set, the result is "
            "ready only after _c_sync_comm_stream.",
        .args =
            {{"x", FL_ARG_VAR}, {"out", FL_ARG_VAR, "None"}, HOW, RING, STREAM},
        .prefix = "c_allreduce",
        .emit = emit_c_allreduce,
    },
    {
        .name = "_c_broadcast",
        .doc = "Copies x of rank root to x of all ranks.",
        .args = {{"x", FL_ARG_VAR},
                 {"root", FL_ARG_INT, "0",
                  .doc = "the rank whose values are copied"},
                 RING,
                 STREAM},
        .op = "c_broadcast",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .into = "x",
    },
    {
        .name = "_c_allgather",
        .doc =
            "Concatenates the rows of x of all ranks, in the order of ranks.",
        .args = {{"x", FL_ARG_VAR}, RANKS, RING, STREAM},
        .prefix = "c_allgather",
        .op = "c_allgather",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "_c_reducescatter",
        .doc = "Sums x over all ranks, and returns the part of the rows that "
               "belongs to this rank.",
        .args = {{"x", FL_ARG_VAR}, RANKS, RING, STREAM},
        .prefix = "c_reducescatter",
        .op = "c_reducescatter",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    },
    {
        .name = "_c_sync_calc_stream",
        .doc = "Returns x. It exists for scripts that synchronise GPU streams.",
        .args = {{"x", FL_ARG_VAR}},
        .op = "c_sync_calc_stream",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .into = "x",
    },
    {
        .name = "_c_sync_comm_stream",
        .doc = "Returns x after all collective operators of a ring have ended.",
        .args = {{"x", FL_ARG_VAR}, RING},
        .op = "c_sync_comm_stream",
        .in = {{"X", "x"}},
        .out = {{"Out"}},
        .into = "x",
    },
    {0},
};
