/* SPDX-License-Identifier: Apache-2.0 */
#include "build/test_minimize.h"

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
              "gradient clip: \"x\" is not a parameter");
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
}

static void a_global_norm_merges_rows(void)
{
    scene s;
    begin_sparse(&s);
    CHECK_OK(
        fl_net_set_clip(s.net, &(fl_clip){"global_norm", .max = 2}, 0, NULL));
    CHECK_OK(try(&s, "sgd", rate));
    CHECK_STR(
        shortened(&s, lines(s.net, s.net->main, "op_role=2,")),
        "fill_constant() -> Out=fill_constant_0.tmp_0\n"
        "merge_selected_rows(X=emb@GRAD) -> Out=merge_selected_rows_0.tmp_0\n"
        "get_tensor_from_selected_rows(X=merge_selected_rows_0.tmp_0) -> "
        "Out=get_tensor_from_selected_rows_0.tmp_0\n"
        "square(X=get_tensor_from_selected_rows_0.tmp_0) -> "
        "Out=square_0.tmp_0\n"
        "reduce_sum(X=square_0.tmp_0) -> Out=reduce_sum_0.tmp_0\n"
        "sum(X=reduce_sum_0.tmp_0) -> Out=sum_1.tmp_0\n"
        "sqrt(X=sum_1.tmp_0) -> Out=sqrt_0.tmp_0\n"
        "elementwise_max(X=fill_constant_0.tmp_0, Y=sqrt_0.tmp_0) -> "
        "Out=elementwise_max_0.tmp_0\n"
        "elementwise_div(X=fill_constant_0.tmp_0, Y=elementwise_max_0.tmp_0) "
        "-> Out=elementwise_div_0.tmp_0\n"
        "elementwise_mul(X=emb@GRAD, Y=elementwise_div_0.tmp_0) -> "
        "Out=elementwise_mul_0.tmp_0\n"
        "sgd(Param=emb, LearningRate=learning_rate_0, "
        "Grad=elementwise_mul_0.tmp_0) -> ParamOut=emb\n");
    CHECK_STR(lines(s.net, s.net->main, "var elementwise_mul"),
              "var elementwise_mul_0.tmp_0: selected_rows f32[10,4]\n");
    end(&s);
}

const fl_test fl_tests[] = {
    {"a gradient is clipped by value", a_value_is_clipped},
    {"a gradient is clipped by norm", a_norm_is_clipped},
    {"gradients are clipped by their common norm", a_global_norm_is_clipped},
    {"clips come before decay", clips_come_before_decay},
    {"each parameter has its own clip", each_parameter_has_its_own_clip},
    {"a wrong clip is told what is wrong", says_what_is_wrong_with_a_clip},
    {"a global norm merges rows", a_global_norm_merges_rows},
    {0},
};
