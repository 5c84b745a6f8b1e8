/* SPDX-License-Identifier: Apache-2.0 */
/* layers_loss.c - losses. */
#include "build/layer.h"

/* Hard labels use an operator of their own, whose name is also the instance
 * name. */
static fl_err cross_entropy(fl_emit *e)
{
    const bool soft = fl_arg_bool(&e->args, "soft_label");
    fl_var *x = fl_arg_var(&e->args, "input");
    fl_var *y = NULL, *shape = NULL, *match = NULL;
    fl_desc *d = fl_net_desc(e->net, soft ? "cross_entropy" : "cross_entropy2");
    e->name = fl_names_generate(e->net->names, e->net->arena, d->type);
    FL_TRY(fl_emit_tmp(e, x->dtype, &y));
    fl_set_in(d, "X", x);
    fl_set_in(d, "Label", fl_arg_var(&e->args, "label"));
    fl_set_out(d, "Y", y);
    if (soft) {
        fl_set_bool(d, "soft_label", true);
    } else {
        FL_TRY(fl_emit_tmp(e, x->dtype, &shape));
        FL_TRY(fl_emit_tmp(e, x->dtype, &match));
        fl_set_out(d, "XShape", shape);
        fl_set_out(d, "MatchX", match);
    }
    fl_set_int(d, "ignore_index", fl_arg_int(&e->args, "ignore_index"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, y);
    return FL_OK;
}

static fl_err softmax_with_cross_entropy(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "logits"), *softmax = NULL, *loss = NULL;
    FL_TRY(fl_emit_tmp(e, x->dtype, &softmax));
    FL_TRY(fl_emit_tmp(e, x->dtype, &loss));
    fl_desc *d = fl_net_desc(e->net, "softmax_with_cross_entropy");
    fl_set_in(d, "Logits", x);
    fl_set_in(d, "Label", fl_arg_var(&e->args, "label"));
    fl_set_out(d, "Softmax", softmax);
    fl_set_out(d, "Loss", loss);
    fl_set_bool(d, "soft_label", fl_arg_bool(&e->args, "soft_label"));
    fl_set_int(d, "ignore_index", fl_arg_int(&e->args, "ignore_index"));
    fl_set_bool(d, "numeric_stable_mode",
                fl_arg_bool(&e->args, "numeric_stable_mode"));
    fl_set_int(d, "axis", fl_arg_int(&e->args, "axis"));
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, loss);
    if (fl_arg_bool(&e->args, "return_softmax"))
        fl_emit_return(e, softmax);
    return FL_OK;
}

static fl_err square_error_cost(fl_emit *e)
{
    fl_var *x = fl_arg_var(&e->args, "input"), *minus = NULL, *out = NULL;
    FL_TRY(fl_emit_tmp(e, x->dtype, &minus));
    fl_desc *d = fl_net_desc(e->net, "elementwise_sub");
    fl_set_in(d, "X", x);
    fl_set_in(d, "Y", fl_arg_var(&e->args, "label"));
    fl_set_out(d, "Out", minus);
    FL_TRY(fl_net_append(e->net, d));
    FL_TRY(fl_emit_tmp(e, x->dtype, &out));
    d = fl_net_desc(e->net, "square");
    fl_set_in(d, "X", minus);
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

static fl_err label_smooth(fl_emit *e)
{
    const double epsilon = fl_arg_float(&e->args, "epsilon");
    if (epsilon < 0 || epsilon > 1)
        return fl_fail(FL_EINVAL,
                       "label_smooth: epsilon is %g, expected 0 to 1", epsilon);
    fl_var *x = fl_arg_var(&e->args, "label"), *out = NULL;
    x->stop_gradient = true;
    FL_TRY(fl_emit_tmp(e, fl_arg_dtype(&e->args, "dtype"), &out));
    fl_desc *d = fl_net_desc(e->net, "label_smooth");
    fl_set_in(d, "X", x);
    if (fl_arg_given(&e->args, "prior_dist"))
        fl_set_in(d, "PriorDist", fl_arg_var(&e->args, "prior_dist"));
    fl_set_out(d, "Out", out);
    fl_set_float(d, "epsilon", epsilon);
    FL_TRY(fl_net_append(e->net, d));
    fl_emit_return(e, out);
    return FL_OK;
}

/* --- made of other layers --- */

#define ARGS(...)                                                              \
    (const fl_arg[])                                                           \
    {                                                                          \
        __VA_ARGS__,                                                           \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

/* A sum over dimensions [from, rank). */
static fl_err sum_from(fl_net *n, fl_var *x, int from, bool keep, fl_var **out)
{
    int64_t dims[FL_MAX_RANK] = {0};
    for (int i = from; i < x->shape.rank; i++)
        dims[i - from] = i;
    return fl_layer_get(n, "reduce_sum",
                        ARGS({"input", .var = x},
                             {"dim", x->shape.rank - from, .ints = dims},
                             {"keep_dim", .b = keep}),
                        out);
}

static fl_err mean_of(fl_net *n, fl_var *x, fl_var **out)
{
    return fl_layer_get(n, "reduce_mean", ARGS({"input", .var = x}), out);
}

static fl_err dice_loss(fl_emit *e)
{
    fl_net *n = e->net;
    fl_var *x = fl_arg_var(&e->args, "input"), *label, *both, *size, *sum;
    fl_var *v = NULL;
    if (x->shape.rank < 2)
        return fl_fail(FL_ESHAPE,
                       "dice_loss: input has %d dims, expected 2 or "
                       "more",
                       x->shape.rank);
    FL_TRY(fl_layer_get(n, "one_hot",
                        ARGS({"input", .var = fl_arg_var(&e->args, "label")},
                             {"depth", .i = x->shape.dim[x->shape.rank - 1]}),
                        &label));
    FL_TRY(fl_var_math(n, "*", x, label, 0, false, &both));
    FL_TRY(sum_from(n, both, 1, false, &v));
    FL_TRY(sum_from(n, x, 1, false, &size));
    FL_TRY(sum_from(n, label, 1, false, &sum));
    FL_TRY(fl_var_math(n, "+", size, sum, 0, false, &size));
    FL_TRY(fl_var_math(n, "+", size, NULL, fl_arg_float(&e->args, "epsilon"),
                       false, &size));
    FL_TRY(fl_var_math(n, "*", v, NULL, 2, false, &v));
    FL_TRY(fl_var_math(n, "/", v, size, 0, false, &v));
    FL_TRY(fl_var_math(n, "-", v, NULL, 1, true, &v));
    FL_TRY(mean_of(n, v, &v));
    fl_emit_return(e, v);
    return FL_OK;
}

/* For each row a distribution over the rows with the same label. */
static fl_err same_labels(fl_emit *e, fl_var **out)
{
    fl_net *n = e->net;
    fl_var *v = fl_arg_var(&e->args, "labels"), *sum;
    const int64_t rows = v->shape.rank ? v->shape.dim[0] : -1;
    const int64_t column[] = {rows, 1}, times[] = {1, rows}, perm[] = {1, 0};
    fl_var *turned = NULL;
    if (rows < 1)
        return fl_fail(FL_ESHAPE, "npair_loss: the number of labels is not "
                                  "known: give them a shape without -1");
    FL_TRY(fl_layer_get(
        n, "reshape", ARGS({"x", .var = v}, {"shape", 2, .ints = column}), &v));
    FL_TRY(fl_layer_get(
        n, "expand", ARGS({"x", .var = v}, {"expand_times", 2, .ints = times}),
        &v));
    FL_TRY(fl_layer_get(n, "transpose",
                        ARGS({"x", .var = v}, {"perm", 2, .ints = perm}),
                        &turned));
    FL_TRY(fl_layer_get(n, "equal", ARGS({"x", .var = v}, {"y", .var = turned}),
                        &v));
    FL_TRY(fl_layer_get(n, "cast",
                        ARGS({"x", .var = v}, {"dtype", .i = FL_F32}), &v));
    FL_TRY(sum_from(n, v, 1, true, &sum));
    return fl_layer_get(
        n, "elementwise_div",
        ARGS({"x", .var = v}, {"y", .var = sum}, {"axis", .i = 0}), out);
}

/* The logits of the sampled classes, and the position of the label among them.
 */
static fl_err sample_logits(fl_emit *e, fl_var **logits, fl_var **label)
{
    fl_var *x = fl_arg_var(&e->args, "logits");
    fl_var *y = fl_arg_var(&e->args, "label");
    fl_var *samples, *odds, *logits_dim, *label_dim;
    FL_TRY(fl_emit_stopped(e, FL_I64, &samples));
    FL_TRY(fl_emit_stopped(e, x->dtype, &odds));
    FL_TRY(fl_emit_tmp(e, x->dtype, logits));
    FL_TRY(fl_emit_stopped(e, FL_I64, label));
    FL_TRY(fl_emit_stopped(e, x->dtype, &logits_dim));
    FL_TRY(fl_emit_stopped(e, y->dtype, &label_dim));
    fl_desc *d = fl_net_desc(e->net, "sample_logits");
    fl_set_in(d, "Logits", x);
    fl_set_in(d, "Labels", y);
    if (fl_arg_given(&e->args, "customized_samples"))
        fl_set_in(d, "CustomizedSamples",
                  fl_arg_var(&e->args, "customized_samples"));
    if (fl_arg_given(&e->args, "customized_probabilities"))
        fl_set_in(d, "CustomizedProbabilities",
                  fl_arg_var(&e->args, "customized_probabilities"));
    fl_set_out(d, "Samples", samples);
    fl_set_out(d, "Probabilities", odds);
    fl_set_out(d, "LogitsDim", logits_dim);
    fl_set_out(d, "LabelsDim", label_dim);
    fl_set_out(d, "SampledLogits", *logits);
    fl_set_out(d, "SampledLabels", *label);
    fl_set_bool(d, "use_customized_samples",
                fl_arg_bool(&e->args, "use_customized_samples"));
    fl_set_bool(d, "uniq", true);
    fl_set_bool(d, "remove_accidental_hits",
                fl_arg_bool(&e->args, "remove_accidental_hits"));
    fl_set_int(d, "num_samples", fl_arg_int(&e->args, "num_samples"));
    fl_set_int(d, "seed", fl_arg_int(&e->args, "seed"));
    return fl_net_append(e->net, d);
}

/* As in Fluid, the label passes through one_hot, which takes one label for each
 * row. */
static fl_err sampled_softmax(fl_emit *e)
{
    const int64_t labels = fl_arg_int(&e->args, "num_true");
    fl_var *logits, *label, *loss = NULL;
    if (labels != 1)
        return fl_fail(FL_EINVAL,
                       "sampled_softmax_with_cross_entropy: num_true is %lld, "
                       "expected 1: a row has one label",
                       (long long)labels);
    FL_TRY(sample_logits(e, &logits, &label));
    FL_TRY(fl_layer_get(
        e->net, "one_hot",
        ARGS({"input", .var = label},
             {"depth", .i = fl_arg_int(&e->args, "num_samples") + 1}),
        &label));
    FL_TRY(fl_layer_get(e->net, "softmax_with_cross_entropy",
                        ARGS({"logits", .var = logits}, {"label", .var = label},
                             {"soft_label", .b = true}),
                        &loss));
    fl_emit_return(e, loss);
    return FL_OK;
}

/* The mean of the squared lengths of the rows of an argument. */
static fl_err mean_square(fl_emit *e, const char *arg, fl_var **out)
{
    fl_var *v = fl_arg_var(&e->args, arg);
    FL_TRY(fl_layer_get(e->net, "square", ARGS({"x", .var = v}), &v));
    FL_TRY(sum_from(e->net, v, 1, false, &v));
    return mean_of(e->net, v, out);
}

static fl_err npair_loss(fl_emit *e)
{
    fl_net *n = e->net;
    const double decay = 0.25 * fl_arg_float(&e->args, "l2_reg");
    fl_var *labels, *l2, *more, *v = NULL;
    FL_TRY(same_labels(e, &labels));
    FL_TRY(mean_square(e, "anchor", &l2));
    FL_TRY(mean_square(e, "positive", &more));
    FL_TRY(fl_var_math(n, "+", l2, more, 0, false, &l2));
    FL_TRY(fl_var_math(n, "*", l2, NULL, decay, false, &l2));
    FL_TRY(fl_layer_get(n, "matmul",
                        ARGS({"x", .var = fl_arg_var(&e->args, "anchor")},
                             {"y", .var = fl_arg_var(&e->args, "positive")},
                             {"transpose_y", .b = true}),
                        &v));
    FL_TRY(fl_layer_get(n, "softmax_with_cross_entropy",
                        ARGS({"logits", .var = v}, {"label", .var = labels},
                             {"soft_label", .b = true}),
                        &v));
    FL_TRY(fl_layer_get(
        n, "elementwise_mul",
        ARGS({"x", .var = labels}, {"y", .var = v}, {"axis", .i = 0}), &v));
    FL_TRY(fl_layer_get(n, "reduce_sum",
                        ARGS({"input", .var = v}, {"dim", .i = 0}), &v));
    FL_TRY(mean_of(n, v, &v));
    FL_TRY(fl_var_math(n, "+", l2, v, 0, false, &v));
    fl_emit_return(e, v);
    return FL_OK;
}

const fl_layer_def fl_layers_loss[] = {
    {
        .name = "cross_entropy",
        .doc = "Cross entropy: -log of the probability that input gives to "
               "the label. With soft_label the label is itself a "
               "distribution.",
        .args = {{"input", FL_ARG_VAR,
                  .doc =
                      "probabilities of the classes, one row for each sample"},
                 {"label", FL_ARG_VAR,
                  .doc = "the class of each row, int64 of shape [.., 1]; with "
                         "soft_label a row of probabilities"},
                 {"soft_label", FL_ARG_BOOL, "False"},
                 {"ignore_index", FL_ARG_INT, "-100"}},
        .prefix = "",
        .emit = cross_entropy,
    },
    {
        .name = "softmax_with_cross_entropy",
        .doc = "The cross entropy of softmax(logits), computed in one "
               "numerically stable operator.",
        .returns = "loss, softmax",
        .args = {{"logits", FL_ARG_VAR},
                 {"label", FL_ARG_VAR,
                  .doc = "the class of each row, int64; with soft_label a row "
                         "of probabilities"},
                 {"soft_label", FL_ARG_BOOL, "False"},
                 {"ignore_index", FL_ARG_INT, "-100"},
                 {"numeric_stable_mode", FL_ARG_BOOL, "True"},
                 {"return_softmax", FL_ARG_BOOL, "False"},
                 {"axis", FL_ARG_INT, "-1"}},
        .emit = softmax_with_cross_entropy,
    },
    {
        .name = "sampled_softmax_with_cross_entropy",
        .doc = "Cross entropy of a softmax over the label and num_samples "
               "other classes. The samples are drawn for each batch, classes "
               "with small numbers more often, unless they are given.",
        .prefix = "sample_logits",
        .args = {{"logits", FL_ARG_VAR},
                 {"label", FL_ARG_VAR,
                  .doc = "the class of each row, int64 of shape [.., 1]"},
                 {"num_samples", FL_ARG_INT},
                 {"num_true", FL_ARG_INT, "1"},
                 {"remove_accidental_hits", FL_ARG_BOOL, "True"},
                 {"use_customized_samples", FL_ARG_BOOL, "False"},
                 {"customized_samples", FL_ARG_VAR, "None"},
                 {"customized_probabilities", FL_ARG_VAR, "None"},
                 {"seed", FL_ARG_INT, "0"}},
        .emit = sampled_softmax,
    },
    {
        .name = "square_error_cost",
        .doc = "The squared error (input - label)^2 of each element.",
        .args = {{"input", FL_ARG_VAR, .doc = "the prediction"},
                 {"label", FL_ARG_VAR,
                  .doc = "the value that should be predicted"}},
        .emit = square_error_cost,
    },
    {
        .name = "sigmoid_cross_entropy_with_logits",
        .doc = "The cross entropy of sigmoid(x) with a label between 0 and "
               "1, for each element.",
        .args = {{"x", FL_ARG_VAR, .doc = "scores before the sigmoid"},
                 {"label", FL_ARG_VAR,
                  .doc = "for each element of x a number from 0 to 1"},
                 {"ignore_index", FL_ARG_INT, "-100",
                  .doc = "elements with this label do not contribute"},
                 {"name", FL_ARG_STR, "None"},
                 {"normalize", FL_ARG_BOOL, "False"}},
        .op = "sigmoid_cross_entropy_with_logits",
        .in = {{"X", "x"}, {"Label", "label"}},
        .out = {{"Out"}},
        .names_out = true,
    },
    {
        .name = "smooth_l1",
        .doc = "The smooth L1 loss, summed over each row: quadratic near "
               "zero, linear beyond 1 / sigma^2.",
        .prefix = "smooth_l1_loss",
        .args = {{"x", FL_ARG_VAR,
                  .doc = "the predictions, one row for each sample"},
                 {"y", FL_ARG_VAR, .doc = "the true values"},
                 {"inside_weight", FL_ARG_VAR, "None"},
                 {"outside_weight", FL_ARG_VAR, "None"},
                 {"sigma", FL_ARG_FLOAT, "None"}},
        .op = "smooth_l1_loss",
        .in = {{"X", "x"},
               {"Y", "y"},
               {"InsideWeight", "inside_weight"},
               {"OutsideWeight", "outside_weight"}},
        .out = {{"Diff", FL_HIDDEN}, {"Out"}},
    },
    {
        .name = "huber_loss",
        .doc = "The Huber loss: half the squared difference up to delta, "
               "linear beyond it.",
        .args = {{"input", FL_ARG_VAR, .doc = "the prediction"},
                 {"label", FL_ARG_VAR, .doc = "the true value"},
                 {"delta", FL_ARG_FLOAT}},
        .op = "huber_loss",
        .in = {{"X", "input"}, {"Y", "label"}},
        .out = {{"Residual", FL_HIDDEN}, {"Out"}},
    },
    {
        .name = "log_loss",
        .doc = "The negative log likelihood of a label of 0 or 1 when "
               "input is the probability of 1.",
        .args = {{"input", FL_ARG_VAR, .doc = "the probability of 1"},
                 {"label", FL_ARG_VAR, .doc = "0 or 1"},
                 {"epsilon", FL_ARG_FLOAT, "0.0001"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "log_loss",
        .in = {{"Predicted", "input"}, {"Labels", "label"}},
        .out = {{"Loss"}},
    },
    {
        .name = "margin_rank_loss",
        .doc = "The margin ranking loss max(0, margin - label * (left - "
               "right)).",
        .args = {{"label", FL_ARG_VAR,
                  .doc =
                      "1: left should be larger; -1: right should be larger"},
                 {"left", FL_ARG_VAR},
                 {"right", FL_ARG_VAR},
                 {"margin", FL_ARG_FLOAT, "0.1"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "margin_rank_loss",
        .in = {{"X1", "left"}, {"X2", "right"}, {"Label", "label"}},
        .out = {{"Out"}, {"Activated", FL_HIDDEN}},
    },
    {
        .name = "rank_loss",
        .doc = "The RankNet loss log(1 + exp(d)) - label * d with d = left "
               "- right. It is low where the two scores are in the order "
               "that label states.",
        .args = {{"label", FL_ARG_VAR,
                  .doc = "1: left should be larger; 0: right should be larger; "
                         "0.5: they should be equal"},
                 {"left", FL_ARG_VAR},
                 {"right", FL_ARG_VAR},
                 {"name", FL_ARG_STR, "None"}},
        .op = "rank_loss",
        .in = {{"Label", "label"}, {"Left", "left"}, {"Right", "right"}},
        .out = {{"Out"}},
    },
    {
        .name = "bpr_loss",
        .doc = "The Bayesian personalised ranking loss of each row, which "
               "is low if the score of the label exceeds all others.",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "scores of the classes, one row for each sample"},
                 {"label", FL_ARG_VAR,
                  .doc = "the class of each row, int64 of shape [.., 1]"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "bpr_loss",
        .in = {{"X", "input"}, {"Label", "label"}},
        .out = {{"Y"}},
    },
    {
        .name = "kldiv_loss",
        .doc = "The Kullback-Leibler divergence of target from the "
               "distribution whose logarithm is x.",
        .args = {{"x", FL_ARG_VAR, .doc = "logarithms of the probabilities"},
                 {"target", FL_ARG_VAR},
                 {"reduction", FL_ARG_STR, "'mean'"},
                 {"name", FL_ARG_STR, "None"}},
        .op = "kldiv_loss",
        .in = {{"X", "x"}, {"Target", "target"}},
        .out = {{"Loss"}},
    },
    {
        .name = "dice_loss",
        .doc = "The Dice loss: 1 minus the overlap of the predicted "
               "classes with the labels.",
        .prefix = "",
        .args = {{"input", FL_ARG_VAR,
                  .doc = "probabilities of the classes in the last dimension"},
                 {"label", FL_ARG_VAR,
                  .doc = "the classes, int64 with a last dimension of 1"},
                 {"epsilon", FL_ARG_FLOAT, "1e-05"}},
        .emit = dice_loss,
    },
    {
        .name = "npair_loss",
        .doc = "The n-pair loss, which is low if rows of anchor and "
               "positive are similar where they have the same label, and "
               "different elsewhere.",
        .prefix = "",
        .args = {{"anchor", FL_ARG_VAR},
                 {"positive", FL_ARG_VAR},
                 {"labels", FL_ARG_VAR,
                  .doc = "the class of each row; their number must be known"},
                 {"l2_reg", FL_ARG_FLOAT, "0.002"}},
        .emit = npair_loss,
    },
    {
        .name = "cos_sim",
        .doc = "The cosine similarity of the rows of X and of Y. Y may "
               "have one row, which is compared with every row of X.",
        .args = {{"X", FL_ARG_VAR}, {"Y", FL_ARG_VAR}},
        .op = "cos_sim",
        .in = {{"X", "X"}, {"Y", "Y"}},
        .out = {{"Out"}, {"XNorm", FL_HIDDEN}, {"YNorm", FL_HIDDEN}},
    },
    {
        .name = "label_smooth",
        .doc = "Smooths labels: (1 - epsilon) * label + epsilon * "
               "prior_dist. Without prior_dist all classes are equally "
               "likely.",
        .args =
            {{"label", FL_ARG_VAR,
              .doc =
                  "labels as distributions (one_hot), one row for each sample"},
             {"prior_dist", FL_ARG_VAR, "None"},
             {"epsilon", FL_ARG_FLOAT, "0.1",
              .doc = "the weight of prior_dist"},
             {"dtype", FL_ARG_DTYPE, "'float32'"},
             {"name", FL_ARG_STR, "None"}},
        .emit = label_smooth,
    },
    {0},
};
