/* What minimize adds to fit a line, optimiser by optimiser. */
#include "build/optimizer.h"

#include "build/layer.h"
#include "build/test_net.h"
#include "ops/check.h"

#include <stdio.h>

typedef struct scene {
    fl_net *net;
    fl_optimizer *opt;
    fl_var *loss;
    fl_param_grads grads;
    fl_ops ops;
} scene;

static fl_var *layer(fl_net *n, const char *name, const fl_arg *args)
{
    fl_var *v = fl_layer(n, name, args);
    if (!v)
        CHECK_OK(fl_net_error(n));
    return v;
}

static fl_var *data(fl_net *n, const char *name, int64_t width)
{
    return layer(n, "data",
                 (fl_arg[]){{"name", .s = name}, {"shape", .i = width}, {0}});
}

/* fit a line; `attr` is the weight's. */
static void begin(scene *s, const fl_param_attr *attr)
{
    *s = (scene){.net = fl_net_make(fl_check_registry())};
    fl_net *n = s->net;
    fl_var *x = data(n, "x", 13), *y = data(n, "y", 1);
    fl_var *predict = layer(n, "fc",
                            (fl_arg[]){{"input", .var = x},
                                       {"size", .i = 1},
                                       {"param_attr", .attr = attr},
                                       {0}});
    fl_var *cost =
        layer(n, "square_error_cost",
              (fl_arg[]){{"input", .var = predict}, {"label", .var = y}, {0}});
    s->loss = layer(n, "mean", (fl_arg[]){{"x", .var = cost}, {0}});
}

static fl_err try(scene *s, const char *name, const fl_arg *args)
{
    FL_TRY(fl_optimizer_new(s->net, name, args, &s->opt));
    return fl_optimizer_minimize(s->opt, s->loss, NULL, &s->grads, &s->ops);
}

static void end(scene *s)
{
    CHECK_OK(fl_program_verify(s->net->main));
    CHECK_OK(fl_program_verify(s->net->startup));
    fl_optimizer_free(s->opt);
    fl_vec_fini(&s->grads);
    fl_vec_fini(&s->ops);
    fl_net_free(s->net);
}

/* Lines of a program's brief text that contain a word, in the net's arena. */
static const char *lines(fl_net *n, const fl_program *p, const char *word)
{
    char *text = fl_program_brief(p);
    char *out = fl_arena_alloc(n->arena, strlen(text) + 1), *to = out;
    for (char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        const char old = *next;
        *next = 0;
        if (strstr(line, word))
            to = stpcpy(to, line + 2);
        *next = old;
    }
    fl_mem_free(text);
    return out;
}

/* The update ops as types: "adam adam scale scale". */
static const char *types(scene *s)
{
    char *text = fl_arena_alloc(s->net->arena, 1024), *to = text;
    for (int64_t i = 0; i < s->ops.n; i++)
        to += sprintf(to, "%s%s", i ? " " : "", s->ops.at[i]->desc.type);
    return text;
}

/* What startup fills, in its order: "b=0 learning_rate_0=0.5". */
static const char *starts(scene *s)
{
    const fl_ops *ops = &fl_program_block(s->net->startup, 0)->ops;
    char *text = fl_arena_alloc(s->net->arena, 1024), *to = text;
    for (int64_t i = 0; i < ops->n; i++) {
        const fl_desc *d = &ops->at[i]->desc;
        if (strcmp(d->type, "fill_constant"))
            continue;
        to += sprintf(to, "%s%s=%g", to == text ? "" : " ",
                      fl_desc_out1(d, "Out"),
                      (double)fl_desc_attr(d, "value")->f);
    }
    return text;
}

/* Ops of the bias: those of the weight differ in names only. */
static const char *bias_ops(scene *s)
{
    return lines(s->net, s->net->main, "op_role=2, op_role_var=[\"fc_0.b_0\"");
}

typedef struct want {
    const char *types, *bias, *starts;
} want;

static void check(const char *name, const fl_arg *args, const want *w)
{
    scene s;
    begin(&s, NULL);
    CHECK_OK(try(&s, name, args));
    CHECK_STR(types(&s), w->types);
    CHECK_STR(bias_ops(&s), w->bias);
    CHECK_STR(starts(&s), w->starts);
    CHECK_INT(s.grads.n, 2); /* in order of creation */
    CHECK_STR(s.grads.at[0].param->name, "fc_0.w_0");
    CHECK_STR(s.grads.at[0].grad->name, "fc_0.w_0@GRAD");
    end(&s);
}

static const fl_arg rate[] = {{"learning_rate", .f = 0.5}, {0}};

static void sgd(void)
{
    check("sgd", rate,
          &(want){"sgd sgd",
                  "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
                  "Grad=fc_0.b_0@GRAD) -> ParamOut=fc_0.b_0 {op_role=2, "
                  "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                  "learning_rate_0=0.5 fc_0.b_0=0"});
}

static void momentum(void)
{
    check("MomentumOptimizer",
          (fl_arg[]){{"learning_rate", .f = 0.5},
                     {"momentum", .f = 0.75},
                     {"use_nesterov", .b = true},
                     {0}},
          &(want){"momentum momentum",
                  "momentum(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
                  "Velocity=fc_0.b_0_velocity_0, LearningRate=learning_rate_0) "
                  "-> ParamOut=fc_0.b_0, VelocityOut=fc_0.b_0_velocity_0 "
                  "{mu=0.75, use_nesterov=true, op_role=2, "
                  "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                  "learning_rate_0=0.5 fc_0.w_0_velocity_0=0 "
                  "fc_0.b_0_velocity_0=0 fc_0.b_0=0"});
}

static void lars(void)
{
    check("LarsMomentum",
          (fl_arg[]){{"learning_rate", .f = 0.5}, {"momentum", .f = 0.75}, {0}},
          &(want){
              "lars_momentum lars_momentum",
              "lars_momentum(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
              "Velocity=fc_0.b_0_velocity_0, LearningRate=learning_rate_0) -> "
              "ParamOut=fc_0.b_0, VelocityOut=fc_0.b_0_velocity_0 {mu=0.75, "
              "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
              "learning_rate_0=0.5 fc_0.w_0_velocity_0=0 fc_0.b_0_velocity_0=0 "
              "fc_0.b_0=0"});
}

static void adagrad(void)
{
    check("Adagrad",
          (fl_arg[]){{"learning_rate", .f = 0.5},
                     {"initial_accumulator_value", .f = 0.25},
                     {0}},
          &(want){"adagrad adagrad",
                  "adagrad(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
                  "Moment=fc_0.b_0_moment_0, LearningRate=learning_rate_0) -> "
                  "ParamOut=fc_0.b_0, MomentOut=fc_0.b_0_moment_0 {op_role=2, "
                  "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                  "learning_rate_0=0.5 fc_0.w_0_moment_0=0.25 "
                  "fc_0.b_0_moment_0=0.25 fc_0.b_0=0"});
}

static void adam(void)
{
    check(
        "AdamOptimizer",
        (fl_arg[]){{"lazy_mode", .b = true}, {"name", .s = "opt"}, {0}},
        &(want){"adam adam scale scale scale scale",
                "adam(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
                "LearningRate=learning_rate_0, Moment1=fc_0.b_0_opt_moment1_0, "
                "Moment2=fc_0.b_0_opt_moment2_0, "
                "Beta1Pow=fc_0.b_0_opt_beta1_pow_acc_0, "
                "Beta2Pow=fc_0.b_0_opt_beta2_pow_acc_0) -> ParamOut=fc_0.b_0, "
                "Moment1Out=fc_0.b_0_opt_moment1_0, "
                "Moment2Out=fc_0.b_0_opt_moment2_0 {lazy_mode=true, op_role=2, "
                "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "scale(X=fc_0.b_0_opt_beta1_pow_acc_0) -> "
                "Out=fc_0.b_0_opt_beta1_pow_acc_0 {scale=0.9, op_role=2, "
                "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "scale(X=fc_0.b_0_opt_beta2_pow_acc_0) -> "
                "Out=fc_0.b_0_opt_beta2_pow_acc_0 {scale=0.999, op_role=2, "
                "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                "learning_rate_0=0.001 fc_0.w_0_opt_beta2_pow_acc_0=0.999 "
                "fc_0.w_0_opt_beta1_pow_acc_0=0.9 fc_0.w_0_opt_moment2_0=0 "
                "fc_0.w_0_opt_moment1_0=0 fc_0.b_0_opt_beta2_pow_acc_0=0.999 "
                "fc_0.b_0_opt_beta1_pow_acc_0=0.9 fc_0.b_0_opt_moment2_0=0 "
                "fc_0.b_0_opt_moment1_0=0 fc_0.b_0=0"});
}

static void adamax(void)
{
    check("adamax", NULL,
          &(want){"adamax adamax scale scale",
                  "adamax(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
                  "LearningRate=learning_rate_0, Moment=fc_0.b_0_moment_0, "
                  "InfNorm=fc_0.b_0_inf_norm_0, "
                  "Beta1Pow=fc_0.b_0_beta1_pow_acc_0) -> ParamOut=fc_0.b_0, "
                  "MomentOut=fc_0.b_0_moment_0, InfNormOut=fc_0.b_0_inf_norm_0 "
                  "{op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                  "scale(X=fc_0.b_0_beta1_pow_acc_0) -> "
                  "Out=fc_0.b_0_beta1_pow_acc_0 {scale=0.9, op_role=2, "
                  "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                  "learning_rate_0=0.001 fc_0.w_0_beta1_pow_acc_0=0.9 "
                  "fc_0.w_0_inf_norm_0=0 fc_0.w_0_moment_0=0 "
                  "fc_0.b_0_beta1_pow_acc_0=0.9 fc_0.b_0_inf_norm_0=0 "
                  "fc_0.b_0_moment_0=0 fc_0.b_0=0"});
}

static void decayed(void)
{
    check("DecayedAdagrad", rate,
          &(want){"decayed_adagrad decayed_adagrad",
                  "decayed_adagrad(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
                  "Moment=fc_0.b_0_moment_0, LearningRate=learning_rate_0) -> "
                  "ParamOut=fc_0.b_0, MomentOut=fc_0.b_0_moment_0 {op_role=2, "
                  "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                  "learning_rate_0=0.5 fc_0.w_0_moment_0=0 fc_0.b_0_moment_0=0 "
                  "fc_0.b_0=0"});
}

static void adadelta(void)
{
    check("Adadelta", rate,
          &(want){
              "adadelta adadelta",
              "adadelta(Param=fc_0.b_0, Grad=fc_0.b_0@GRAD, "
              "AvgSquaredGrad=fc_0.b_0__avg_squared_grad_0, "
              "AvgSquaredUpdate=fc_0.b_0__avg_squared_update_0) -> "
              "ParamOut=fc_0.b_0, "
              "AvgSquaredGradOut=fc_0.b_0__avg_squared_grad_0, "
              "AvgSquaredUpdateOut=fc_0.b_0__avg_squared_update_0 {op_role=2, "
              "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
              "learning_rate_0=0.5 fc_0.w_0__avg_squared_update_0=0 "
              "fc_0.w_0__avg_squared_grad_0=0 fc_0.b_0__avg_squared_update_0=0 "
              "fc_0.b_0__avg_squared_grad_0=0 fc_0.b_0=0"});
}

static void rmsprop(void)
{
    check(
        "RMSProp",
        (fl_arg[]){{"learning_rate", .f = 0.5}, {"centered", .b = true}, {0}},
        &(want){"rmsprop rmsprop",
                "rmsprop(Param=fc_0.b_0, MeanSquare=fc_0.b_0_mean_square_0, "
                "MeanGrad=fc_0.b_0_mean_grad_0, LearningRate=learning_rate_0, "
                "Grad=fc_0.b_0@GRAD, Moment=fc_0.b_0_momentum_0) -> "
                "ParamOut=fc_0.b_0, MomentOut=fc_0.b_0_momentum_0, "
                "MeanSquareOut=fc_0.b_0_mean_square_0, "
                "MeanGradOut=fc_0.b_0_mean_grad_0 {epsilon=1e-06, decay=0.95, "
                "centered=true, op_role=2, op_role_var=[\"fc_0.b_0\", "
                "\"fc_0.b_0@GRAD\"]}\n",
                "learning_rate_0=0.5 fc_0.w_0_mean_grad_0=0 "
                "fc_0.w_0_mean_square_0=0 fc_0.w_0_momentum_0=0 "
                "fc_0.b_0_mean_grad_0=0 fc_0.b_0_mean_square_0=0 "
                "fc_0.b_0_momentum_0=0 fc_0.b_0=0"});
}

static void ftrl(void)
{
    check(
        "Ftrl",
        (fl_arg[]){{"learning_rate", .f = 0.5},
                   {"l1", .f = 0.25},
                   {"l2", .f = 0.125},
                   {0}},
        &(want){"ftrl ftrl",
                "ftrl(Param=fc_0.b_0, SquaredAccumulator=fc_0.b_0_squared_0, "
                "LinearAccumulator=fc_0.b_0_linear_0, Grad=fc_0.b_0@GRAD, "
                "LearningRate=learning_rate_0) -> ParamOut=fc_0.b_0, "
                "SquaredAccumOut=fc_0.b_0_squared_0, "
                "LinearAccumOut=fc_0.b_0_linear_0 {l1=0.25, l2=0.125, "
                "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n",
                "learning_rate_0=0.5 fc_0.w_0_linear_0=0 fc_0.w_0_squared_0=0 "
                "fc_0.b_0_linear_0=0 fc_0.b_0_squared_0=0 fc_0.b_0=0"});
}

/* --- learning rates --- */

static void a_parameter_scales_the_rate(void)
{
    scene s;
    begin(&s, &(fl_param_attr){.learning_rate = 0.25f});
    CHECK_OK(try(&s, "sgd", rate));
    CHECK_STR(
        lines(s.net, s.net->main, "op_role=18"),
        "fill_constant() -> Out=tmp_0 {shape=[1l], value=0.25, op_role=18}\n"
        "elementwise_mul(X=learning_rate_0, Y=tmp_0) -> Out=tmp_1 "
        "{op_role=18}\n");
    CHECK_STR(types(&s), "sgd fill_constant elementwise_mul sgd");
    CHECK_STR(fl_desc_in1(&s.ops.at[3]->desc, "LearningRate"), "tmp_1");
    end(&s);
}

static void a_schedule_is_a_rate(void)
{
    scene s;
    begin(&s, NULL);
    fl_var *v = NULL;
    const fl_shape one = {1, {1}};
    CHECK_OK(
        fl_net_global(s.net, "lr", FL_F32, &one, &(fl_init){"constant"}, &v));
    CHECK_OK(
        try(&s, "sgd", (fl_arg[]){{"learning_rate", .n = 1, .var = v}, {0}}));
    CHECK_STR(fl_desc_in1(&s.ops.at[0]->desc, "LearningRate"), "lr");
    CHECK(!fl_block_var(fl_program_block(s.net->main, 0), "learning_rate_0"));
    end(&s);
}

/* --- decay --- */

static void check_decay(const char *kind, const char *bias)
{
    const fl_regularizer r = {kind, .coeff = 0.5f};
    scene s;
    begin(&s, NULL);
    CHECK_OK(try(&s, "sgd",
                 (fl_arg[]){{"learning_rate", .f = 1},
                            {"regularization", .regularizer = &r},
                            {0}}));
    CHECK_STR(bias_ops(&s), bias);
    CHECK_STR(types(&s), "sgd sgd");
    end(&s);
}

static void l2_adds_the_parameter(void)
{
    check_decay("l2",
                "scale(X=fc_0.b_0) -> Out=_generated_var_0 {scale=0.5, "
                "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "sum(X=[fc_0.b_0@GRAD, _generated_var_0]) -> Out=fc_0.b_0@GRAD "
                "{op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
                "Grad=fc_0.b_0@GRAD) -> ParamOut=fc_0.b_0 {op_role=2, "
                "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n");
}

static void l1_adds_the_sign(void)
{
    check_decay("l1",
                "sign(X=fc_0.b_0) -> Out=_generated_var_0 {op_role=2, "
                "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "scale(X=_generated_var_0) -> Out=_generated_var_0 {scale=0.5, "
                "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "sum(X=[fc_0.b_0@GRAD, _generated_var_0]) -> Out=fc_0.b_0@GRAD "
                "{op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
                "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
                "Grad=fc_0.b_0@GRAD) -> ParamOut=fc_0.b_0 {op_role=2, "
                "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n");
}

static void a_parameters_own_decay_wins(void)
{
    const fl_regularizer common = {"l2", .coeff = 0.5f};
    const fl_regularizer own = {"l2", .coeff = 0.125f};
    scene s;
    begin(&s, &(fl_param_attr){.regularizer = &own});
    CHECK_OK(try(&s, "sgd",
                 (fl_arg[]){{"learning_rate", .f = 1},
                            {"regularization", .regularizer = &common},
                            {0}}));
    CHECK_STR(lines(s.net, s.net->main, "scale("),
              "scale(X=fc_0.b_0) -> Out=_generated_var_0 {scale=0.5, "
              "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
              "scale(X=fc_0.w_0) -> Out=_generated_var_1 {scale=0.125, "
              "op_role=2, op_role_var=[\"fc_0.w_0\", \"fc_0.w_0@GRAD\"]}\n");
    end(&s);
}

static fl_err own_term(const fl_regularizer *self, fl_net *n, fl_var *param,
                       fl_var *grad, fl_var **term)
{
    CHECK_STR(self->user, "mine");
    *term = strcmp(param->name, "fc_0.b_0") ? NULL : param;
    return FL_OK;
}

static void a_regularizer_of_ones_own(void)
{
    const fl_regularizer r = {.emit = own_term, .user = "mine"};
    scene s;
    begin(&s, NULL);
    CHECK_OK(try(&s, "sgd",
                 (fl_arg[]){{"learning_rate", .f = 1},
                            {"regularization", .regularizer = &r},
                            {0}}));
    CHECK_STR(lines(s.net, s.net->main, "sum("),
              "sum(X=[fc_0.b_0@GRAD, fc_0.b_0]) -> Out=fc_0.b_0@GRAD "
              "{op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n");
    end(&s);
}

/* --- clipping --- */

static void check_clip(const fl_clip *clip, const fl_regularizer *r,
                       const char *ops)
{
    scene s;
    begin(&s, NULL);
    CHECK_OK(fl_net_set_clip(s.net, clip, 0, NULL));
    CHECK_OK(try(&s, "sgd",
                 (fl_arg[]){{"learning_rate", .f = 1},
                            {"regularization", .regularizer = r},
                            {0}}));
    CHECK_STR(lines(s.net, s.net->main, "op_role=2,"), ops);
    end(&s);
}

static void a_value_is_clipped(void)
{
    check_clip(&(fl_clip){"value", .max = 2, .min = -1}, NULL,
               "clip(X=fc_0.b_0@GRAD) -> Out=clip_0.tmp_0 {min=-1.0, max=2.0, "
               "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
               "clip(X=fc_0.w_0@GRAD) -> Out=clip_1.tmp_0 {min=-1.0, max=2.0, "
               "op_role=2, op_role_var=[\"fc_0.w_0\", \"fc_0.w_0@GRAD\"]}\n"
               "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
               "Grad=clip_0.tmp_0) -> ParamOut=fc_0.b_0 {op_role=2, "
               "op_role_var=[\"fc_0.b_0\", \"clip_0.tmp_0\"]}\n"
               "sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, "
               "Grad=clip_1.tmp_0) -> ParamOut=fc_0.w_0 {op_role=2, "
               "op_role_var=[\"fc_0.w_0\", \"clip_1.tmp_0\"]}\n");
}

static void a_norm_is_clipped(void)
{
    check_clip(&(fl_clip){"norm", .max = 2}, NULL,
               "clip_by_norm(X=fc_0.b_0@GRAD) -> Out=clip_by_norm_0.tmp_0 "
               "{max_norm=2.0, op_role=2, op_role_var=[\"fc_0.b_0\", "
               "\"fc_0.b_0@GRAD\"]}\n"
               "clip_by_norm(X=fc_0.w_0@GRAD) -> Out=clip_by_norm_1.tmp_0 "
               "{max_norm=2.0, op_role=2, op_role_var=[\"fc_0.w_0\", "
               "\"fc_0.w_0@GRAD\"]}\n"
               "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
               "Grad=clip_by_norm_0.tmp_0) -> ParamOut=fc_0.b_0 {op_role=2, "
               "op_role_var=[\"fc_0.b_0\", \"clip_by_norm_0.tmp_0\"]}\n"
               "sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, "
               "Grad=clip_by_norm_1.tmp_0) -> ParamOut=fc_0.w_0 {op_role=2, "
               "op_role_var=[\"fc_0.w_0\", \"clip_by_norm_1.tmp_0\"]}\n");
}

/* Without attributes. */
static char *shortened(scene *s, const char *text)
{
    char *out = fl_arena_strdup(s->net->arena, text), *to = out;
    for (const char *at = out; *at; at++) {
        if (!strncmp(at, " {", 2))
            at = strchr(at, '\n');
        *to++ = *at;
    }
    *to = 0;
    return out;
}

static void a_global_norm_is_clipped(void)
{
    scene s;
    begin(&s, NULL);
    CHECK_OK(
        fl_net_set_clip(s.net, &(fl_clip){"global_norm", .max = 2}, 0, NULL));
    CHECK_OK(try(&s, "sgd", rate));
    CHECK_STR(
        shortened(&s, lines(s.net, s.net->main, "op_role=2,")),
        "fill_constant() -> Out=fill_constant_0.tmp_0\n"
        "square(X=fc_0.b_0@GRAD) -> Out=square_0.tmp_0\n"
        "reduce_sum(X=square_0.tmp_0) -> Out=reduce_sum_0.tmp_0\n"
        "square(X=fc_0.w_0@GRAD) -> Out=square_1.tmp_0\n"
        "reduce_sum(X=square_1.tmp_0) -> Out=reduce_sum_1.tmp_0\n"
        "sum(X=[reduce_sum_0.tmp_0, reduce_sum_1.tmp_0]) -> Out=sum_0.tmp_0\n"
        "sqrt(X=sum_0.tmp_0) -> Out=sqrt_0.tmp_0\n"
        "elementwise_max(X=fill_constant_0.tmp_0, Y=sqrt_0.tmp_0) -> "
        "Out=elementwise_max_0.tmp_0\n"
        "elementwise_div(X=fill_constant_0.tmp_0, Y=elementwise_max_0.tmp_0) "
        "-> Out=elementwise_div_0.tmp_0\n"
        "elementwise_mul(X=fc_0.b_0@GRAD, Y=elementwise_div_0.tmp_0) -> "
        "Out=elementwise_mul_0.tmp_0\n"
        "elementwise_mul(X=fc_0.w_0@GRAD, Y=elementwise_div_0.tmp_0) -> "
        "Out=elementwise_mul_1.tmp_0\n"
        "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
        "Grad=elementwise_mul_0.tmp_0) -> ParamOut=fc_0.b_0\n"
        "sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, "
        "Grad=elementwise_mul_1.tmp_0) -> ParamOut=fc_0.w_0\n");
    CHECK_STR(
        lines(s.net, s.net->main, "fill_constant_0.tmp_0 {"),
        "fill_constant() -> Out=fill_constant_0.tmp_0 {shape=[1l], value=2.0, "
        "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n");
    end(&s);
}

static void clips_come_before_decay(void)
{
    check_clip(&(fl_clip){"value", .max = 2, .min = -1},
               &(fl_regularizer){"l2", .coeff = 0.5f},
               "clip(X=fc_0.b_0@GRAD) -> Out=clip_0.tmp_0 {min=-1.0, max=2.0, "
               "op_role=2, op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n"
               "clip(X=fc_0.w_0@GRAD) -> Out=clip_1.tmp_0 {min=-1.0, max=2.0, "
               "op_role=2, op_role_var=[\"fc_0.w_0\", \"fc_0.w_0@GRAD\"]}\n"
               "scale(X=fc_0.b_0) -> Out=_generated_var_0 {scale=0.5, "
               "op_role=2, op_role_var=[\"fc_0.b_0\", \"clip_0.tmp_0\"]}\n"
               "sum(X=[clip_0.tmp_0, _generated_var_0]) -> Out=clip_0.tmp_0 "
               "{op_role=2, op_role_var=[\"fc_0.b_0\", \"clip_0.tmp_0\"]}\n"
               "scale(X=fc_0.w_0) -> Out=_generated_var_1 {scale=0.5, "
               "op_role=2, op_role_var=[\"fc_0.w_0\", \"clip_1.tmp_0\"]}\n"
               "sum(X=[clip_1.tmp_0, _generated_var_1]) -> Out=clip_1.tmp_0 "
               "{op_role=2, op_role_var=[\"fc_0.w_0\", \"clip_1.tmp_0\"]}\n"
               "sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
               "Grad=clip_0.tmp_0) -> ParamOut=fc_0.b_0 {op_role=2, "
               "op_role_var=[\"fc_0.b_0\", \"clip_0.tmp_0\"]}\n"
               "sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, "
               "Grad=clip_1.tmp_0) -> ParamOut=fc_0.w_0 {op_role=2, "
               "op_role_var=[\"fc_0.w_0\", \"clip_1.tmp_0\"]}\n");
}

static void each_parameter_has_its_own_clip(void)
{
    const char *w = "fc_0.w_0";
    scene s;
    begin(&s, NULL);
    CHECK_OK(fl_net_set_clip(s.net, &(fl_clip){"norm", .max = 2}, 1, &w));
    CHECK_OK(try(&s, "sgd", rate));
    CHECK_STR(lines(s.net, s.net->main, "clip"),
              "var clip_by_norm_0.tmp_0: f32[13,1]\n"
              "clip_by_norm(X=fc_0.w_0@GRAD) -> Out=clip_by_norm_0.tmp_0 "
              "{max_norm=2.0, op_role=2, op_role_var=[\"fc_0.w_0\", "
              "\"fc_0.w_0@GRAD\"]}\n"
              "sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, "
              "Grad=clip_by_norm_0.tmp_0) -> ParamOut=fc_0.w_0 {op_role=2, "
              "op_role_var=[\"fc_0.w_0\", \"clip_by_norm_0.tmp_0\"]}\n");
    CHECK_STR(types(&s), "sgd sgd");
    CHECK_STR(fl_desc_in1(&s.ops.at[0]->desc, "Grad"), "fc_0.b_0@GRAD");
    end(&s);
}

static void says_what_is_wrong_with_a_clip(void)
{
    const char *w = "fc_0.w_0", *x = "x";
    scene s;
    begin(&s, NULL);
    CHECK_ERR(fl_net_set_clip(s.net, NULL, 1, &x), FL_EINVAL,
              "gradient clip: \"x\" is no parameter");
    CHECK_OK(
        fl_net_set_clip(s.net, &(fl_clip){"global_norm", .max = 2}, 0, NULL));
    CHECK_OK(
        fl_net_set_clip(s.net, &(fl_clip){"global_norm", .max = 3}, 1, &w));
    CHECK_ERR(try(&s, "sgd", rate), FL_EINVAL,
              "group \"default_group\" has clip_norm 2 and 3, expected one");
    end(&s);
    begin(&s, NULL);
    CHECK_OK(fl_net_set_clip(s.net, &(fl_clip){"hard", .max = 2}, 0, NULL));
    CHECK_ERR(try(&s, "sgd", rate), FL_EINVAL,
              "gradient clip of \"fc_0.b_0\" is \"hard\", expected \"value\"");
    end(&s);
    begin(&s, NULL);
    CHECK_ERR(try(&s, "sgd",
                  (fl_arg[]){{"learning_rate", .f = 1},
                             {"regularization",
                              .regularizer = &(fl_regularizer){"l3"}},
                             {0}}),
              FL_EINVAL,
              "regularizer of \"fc_0.b_0\" is \"l3\", expected \"l1\" or");
    end(&s);
}

/* --- sparse gradients --- */

/* Two lookups in one table, summed up. */
static void begin_sparse(scene *s)
{
    *s = (scene){.net = fl_net_make(fl_check_registry())};
    fl_net *n = s->net;
    fl_var *out[2];
    for (int i = 0; i < 2; i++) {
        fl_var *ids = layer(n, "data",
                            (fl_arg[]){{"name", .s = i ? "b" : "a"},
                                       {"shape", .i = 1},
                                       {"dtype", .i = FL_I64},
                                       {0}});
        out[i] = layer(
            n, "embedding",
            (fl_arg[]){{"input", .var = ids},
                       {"size", .n = 2, .ints = (int64_t[]){10, 4}},
                       {"is_sparse", .b = true},
                       {"param_attr", .attr = &(fl_param_attr){.name = "emb"}},
                       {0}});
    }
    fl_var *sum =
        layer(n, "sums", (fl_arg[]){{"input", .n = 2, .vars = out}, {0}});
    s->loss = layer(n, "mean", (fl_arg[]){{"x", .var = sum}, {0}});
}

static void a_sparse_gradient_reaches_the_update(void)
{
    scene s;
    begin_sparse(&s);
    CHECK_OK(try(&s, "adam", NULL));
    CHECK_STR(types(&s), "adam scale scale");
    CHECK_STR(fl_desc_in1(&s.ops.at[0]->desc, "Grad"), "emb@GRAD");
    CHECK_INT(s.grads.at[0].grad->kind, FL_SELECTED_ROWS);
    end(&s);
}

static void decay_makes_a_sparse_gradient_dense(void)
{
    const fl_regularizer r = {"l2", .coeff = 0.5f};
    scene s;
    begin_sparse(&s);
    CHECK_OK(try(&s, "sgd",
                 (fl_arg[]){{"learning_rate", .f = 1},
                            {"regularization", .regularizer = &r},
                            {0}}));
    CHECK_STR(lines(s.net, s.net->main, "op_role=2,"),
              "scale(X=emb) -> Out=_generated_var_0 {scale=0.5, op_role=2, "
              "op_role_var=[\"emb\", \"emb@GRAD\"]}\n"
              "sum(X=[emb@GRAD, _generated_var_0]) -> Out=emb@GRAD@NEWGRAD@ "
              "{op_role=2, op_role_var=[\"emb\", \"emb@GRAD\"]}\n"
              "sgd(Param=emb, LearningRate=learning_rate_0, "
              "Grad=emb@GRAD@NEWGRAD@) -> ParamOut=emb {op_role=2, "
              "op_role_var=[\"emb\", \"emb@GRAD@NEWGRAD@\"]}\n");
    CHECK_STR(lines(s.net, s.net->main, "NEWGRAD@:"),
              "var emb@GRAD@NEWGRAD@: f32[10,4]\n");
    end(&s);
}

/* --- mistakes --- */

static void says_what_is_wrong(void)
{
    scene s;
    begin(&s, &(fl_param_attr){.frozen = true});
    CHECK_ERR(try(&s, "Adan", NULL), FL_ENOENT,
              "unknown optimizer \"Adan\"; did you mean \"Adam\"?");
    CHECK_ERR(try(&s, "wonderful", NULL), FL_ENOENT,
              "unknown optimizer \"wonderful\"");
    CHECK_ERR(try(&s, "adam", (fl_arg[]){{"beta_1", .f = 0.5}, {0}}), FL_EINVAL,
              "Adam: unknown argument \"beta_1\"; did you mean \"beta1\"?");
    CHECK_ERR(try(&s, "sgd", NULL), FL_EINVAL,
              "SGD: argument \"learning_rate\" is missing (float or variable)");
    CHECK_OK(try(
        &s, "momentum",
        (fl_arg[]){{"learning_rate", .f = 1}, {"momentum", .f = 0.5}, {0}}));
    CHECK_STR(types(&s), "momentum"); /* the weight is frozen */
    CHECK_ERR(fl_optimizer_minimize(s.opt, s.loss, NULL, NULL, NULL), FL_EINVAL,
              "Momentum: parameter \"fc_0.b_0\" has its velocity already");
    end(&s);
}

static void a_loss_needs_parameters(void)
{
    const char *none[] = {"fc_0.w_0", "fc_0.b_0"};
    scene s;
    begin(&s, NULL);
    CHECK_OK(fl_optimizer_new(s.net, "sgd", rate, &s.opt));
    CHECK_ERR(
        fl_optimizer_minimize(
            s.opt, s.loss, &(fl_backward_opts){.n_no_grad = 2, .no_grad = none},
            NULL, NULL),
        FL_EINVAL, "SGD: the loss \"mean_0.tmp_0\" depends on no parameter");
    end(&s);
}

const fl_test fl_tests[] = {
    {"sgd on fit a line", sgd},
    {"momentum on fit a line", momentum},
    {"lars momentum on fit a line", lars},
    {"adagrad on fit a line", adagrad},
    {"adam on fit a line", adam},
    {"adamax on fit a line", adamax},
    {"decayed adagrad on fit a line", decayed},
    {"adadelta on fit a line", adadelta},
    {"rmsprop on fit a line", rmsprop},
    {"ftrl on fit a line", ftrl},
    {"a parameter scales the rate", a_parameter_scales_the_rate},
    {"a schedule is a learning rate", a_schedule_is_a_rate},
    {"l2 adds the parameter", l2_adds_the_parameter},
    {"l1 adds the sign of the parameter", l1_adds_the_sign},
    {"a parameter's own decay wins", a_parameters_own_decay_wins},
    {"a regularizer of one's own is called", a_regularizer_of_ones_own},
    {"a gradient is clipped by value", a_value_is_clipped},
    {"a gradient is clipped by norm", a_norm_is_clipped},
    {"gradients are clipped by their common norm", a_global_norm_is_clipped},
    {"clips come before decay", clips_come_before_decay},
    {"each parameter has its own clip", each_parameter_has_its_own_clip},
    {"a wrong clip is told what is wrong", says_what_is_wrong_with_a_clip},
    {"a sparse gradient reaches the update",
     a_sparse_gradient_reaches_the_update},
    {"decay makes a sparse gradient dense",
     decay_makes_a_sparse_gradient_dense},
    {"an optimizer says what is wrong", says_what_is_wrong},
    {"a loss needs parameters", a_loss_needs_parameters},
    {0},
};
