/* SPDX-License-Identifier: Apache-2.0 */
#include "build/test_minimize.h"

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

static void says_which_kind_is_unknown(void)
{
    scene s;
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

const fl_test fl_tests[] = {
    {"l2 adds the parameter", l2_adds_the_parameter},
    {"l1 adds the sign of the parameter", l1_adds_the_sign},
    {"a parameter's own decay wins", a_parameters_own_decay_wins},
    {"a regularizer of one's own is called", a_regularizer_of_ones_own},
    {"decay makes a sparse gradient dense",
     decay_makes_a_sparse_gradient_dense},
    {"a wrong regularizer is told what is wrong", says_which_kind_is_unknown},
    {0},
};
