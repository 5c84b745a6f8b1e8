/* SPDX-License-Identifier: Apache-2.0 */
/* What minimize adds to fit a line, optimiser by optimiser. */
#include "build/test_minimize.h"

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
              "Momentum: parameter \"fc_0.b_0\" already has a velocity");
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
    {"a sparse gradient reaches the update",
     a_sparse_gradient_reaches_the_update},
    {"an optimizer says what is wrong", says_what_is_wrong},
    {"a loss needs parameters", a_loss_needs_parameters},
    {0},
};
