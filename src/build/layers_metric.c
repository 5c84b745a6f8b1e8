/* SPDX-License-Identifier: Apache-2.0 */
/* layers_metric.c - metrics of a network. */
#include "build/layer.h"

static fl_err topk(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *values = NULL, *indices = NULL;
    const fl_arg *k = fl_arg_get(&e->args, "k");
    FL_TRY(fl_emit_stopped(e, x->dtype, &values));
    FL_TRY(fl_emit_stopped(e, FL_I64, &indices));
    fl_desc *d = fl_net_desc(e->net, "top_k");
    fl_set_in(d, "X", x);
    if (k->n)
        fl_set_in(d, "K", k->var);
    else
        fl_set_int(d, "k", k->i);
    fl_set_out(d, "Out", values);
    fl_set_out(d, "Indices", indices);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, values);
    fl_emit_return(e, indices);
    return FL_OK;
}

/* The variable that was given, or a temporary. */
static fl_err given_or_tmp(fl_emit *e, const char *arg, fl_var **out)
{
    *out = fl_arg_var(&e->args, arg);
    return *out ? FL_OK : fl_emit_tmp(e, FL_I32, out);
}

static fl_err accuracy(fl_emit *e)
{
    fl_var *top[2] = {0}, *out = NULL, *correct = NULL, *total = NULL;
    FL_TRY(fl_layer_call(
        e->net, "topk",
        (fl_arg[]){{"input", .var = fl_arg_var(&e->args, "input")},
                   {"k", .i = fl_arg_int(&e->args, "k")},
                   {0}},
        2, top, NULL));
    FL_TRY(fl_emit_tmp(e, FL_F32, &out));
    FL_TRY(given_or_tmp(e, "correct", &correct));
    FL_TRY(given_or_tmp(e, "total", &total));
    fl_desc *d = fl_net_desc(e->net, "accuracy");
    fl_set_in(d, "Out", top[0]);
    fl_set_in(d, "Indices", top[1]);
    fl_set_in(d, "Label", fl_arg_var(&e->args, "label"));
    fl_set_out(d, "Accuracy", out);
    fl_set_out(d, "Correct", correct);
    fl_set_out(d, "Total", total);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- auc --- */

/* Counts for each threshold, which are kept between runs: [steps, thresholds +
 * 1], initially zero. */
static fl_err add_counts(fl_emit *e, int64_t steps, fl_var **out)
{
    const fl_init zero = {"constant"};
    const fl_shape shape = {
        2, {steps, fl_arg_int(&e->args, "num_thresholds") + 1}};
    const char *name =
        fl_names_generate(e->net->names, e->net->arena, "_generated_var");
    return fl_net_global(e->net, name, FL_I64, &shape, &zero, out);
}

static fl_err append_auc(fl_emit *e, fl_var *pos, fl_var *neg, int64_t steps,
                         fl_var *out)
{
    fl_desc *d = fl_net_desc(e->net, "auc");
    fl_set_in(d, "Predict", fl_arg_var(&e->args, "input"));
    fl_set_in(d, "Label", fl_arg_var(&e->args, "label"));
    fl_set_in(d, "StatPos", pos);
    fl_set_in(d, "StatNeg", neg);
    fl_set_out(d, "AUC", out);
    fl_set_out(d, "StatPosOut", pos);
    fl_set_out(d, "StatNegOut", neg);
    fl_set_str(d, "curve", fl_arg_str(&e->args, "curve"));
    fl_set_int(d, "num_thresholds", fl_arg_int(&e->args, "num_thresholds"));
    fl_set_int(d, "slide_steps", steps);
    return fl_net_append(e->net, d);
}

/* One op for the last slide_steps batches, and one for all batches (slide_steps
 * 0). */
static fl_err auc(fl_emit *e)
{
    const int64_t steps = fl_arg_int(&e->args, "slide_steps");
    fl_var *all = NULL, *batch = NULL, *stat[4] = {0};
    FL_TRY(fl_emit_tmp(e, FL_F64, &all));
    FL_TRY(fl_emit_tmp(e, FL_F64, &batch));
    for (int i = 0; i < 4; i++)
        FL_TRY(add_counts(e, i < 2 && steps ? steps : 1, &stat[i]));
    FL_TRY(append_auc(e, stat[0], stat[1], steps, batch));
    FL_TRY(append_auc(e, stat[2], stat[3], 0, all));
    fl_emit_return(e, all);
    fl_emit_return(e, batch);
    for (int i = 0; i < 4; i++)
        fl_emit_return(e, stat[i]);
    return FL_OK;
}

const fl_layer_def fl_layers_metric[] = {
    {
        .name = "topk",
        .doc = "The k largest elements of each row, and their indices."
               "",
        .prefix = "top_k",
        .returns = "values, indices",
        .args = {{"input", FL_ARG_VAR},
                 {"k", FL_ARG_INT_OR_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .emit = topk,
    },
    {
        .name = "accuracy",
        .doc = "The fraction of rows whose label is among the k classes "
               "with the largest scores.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "scores of the classes, one row for each sample"},
                 {"label", FL_ARG_VAR,
                  .doc = "the class of each row, int64 of shape [.., 1]"},
                 {"k", FL_ARG_INT, "1"},
                 {"correct", FL_ARG_VAR, "None"},
                 {"total", FL_ARG_VAR, "None"}},
        .emit = accuracy,
    },
    {
        .name = "auc",
        .doc = "The area under a curve: over all batches, and over the "
               "last slide_steps batches. Also returns the variables with "
               "the counts.",
        .returns = "auc, batch_auc, [states]",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "probabilities of the classes 0 and 1, a row for each "
                         "sample"},
                 {"label", FL_ARG_VAR,
                  .doc = "0 or 1 for each row, int64 of shape [.., 1]"},
                 {"curve", FL_ARG_STR, "'ROC'"},
                 {"num_thresholds", FL_ARG_INT, "4095"},
                 {"topk", FL_ARG_INT, "1"},
                 {"slide_steps", FL_ARG_INT, "1"}},
        .emit = auc,
    },
    {
        .name = "mean_iou",
        .doc = "The mean intersection over union of prediction and label "
               "over all classes, and the numbers of wrong and correct "
               "elements of each class.",
        .returns = "mean_iou, wrong, correct",
        .args = {{"input", FL_ARG_VAR, .doc = "the predicted classes"},
                 {"label", FL_ARG_VAR, .doc = "the true classes"},
                 {"num_classes", FL_ARG_INT}},
        .op = "mean_iou",
        .in = {{"Predictions", "input"}, {"Labels", "label"}},
        .out = {{"OutMeanIou", FL_STOP},
                {"OutWrong", FL_STOP},
                {"OutCorrect", FL_STOP}},
    },
    {0},
};
