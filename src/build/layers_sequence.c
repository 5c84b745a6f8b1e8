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
    {0},
};
