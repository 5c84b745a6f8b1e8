/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void normalises_each_group(void)
{
    fl_check_op(&(fl_op_case){
        .type = "group_norm",
        .attr = {{"groups", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 4, 1, 2}, {1, 3, 1, 3, 2, 4, 6, 8}},
               {"Scale", {4}, {1, 2, 1, 1}},
               {"Bias", {4}, {0, 0, 0, 10}}},
        .out = {{"Y",
                 {1, 4, 1, 2},
                 {-0.999995, 0.999995, -1.99999, 1.99999, -1.3416395,
                  -0.4472132, 10.4472132, 11.3416395}},
                {"Mean", {1, 2}, {2, 5}},
                {"Variance", {1, 2}, {1, 5}}},
        .grad = {"X", "Scale", "Bias"},
    });
}

static void needs_no_scale_and_bias(void)
{
    fl_check_op(&(fl_op_case){
        .type = "group_norm",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1}},
        .in = {{"X", {2, 2, 2}, {1, 2, 3, 6, 0, 4, 1, 7}}},
        .out = {{"Mean", {2, 1}, {3, 3}}, {"Variance", {2, 1}, {3.5, 7.5}}},
        .want = {"Y"},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("group_norm{groups=2} X=f32[-1,4,3,3] "
                            "Scale=f32[4] Bias=f32[4]"),
              "Y=f32[-1,4,3,3] Mean=f32[-1,2] Variance=f32[-1,2]");
    CHECK_ERR(fl_infer_try("group_norm{groups=3} X=f32[1,4,3,3]"), FL_ESHAPE,
              "group_norm: X is [1,4,3,3] in 3 groups");
    CHECK_ERR(fl_infer_try("group_norm{groups=2} X=f32[1,4,3,3] Scale=f32[3]"),
              FL_ESHAPE, "group_norm: Scale is f32[3], expected f32[4]");
    CHECK_ERR(fl_infer_try("group_norm_grad{groups=2} X=f32[1,4,3,3] "
                           "Mean=f32[1,1] Variance=f32[1,2] "
                           "Y@GRAD=f32[1,4,3,3]"),
              FL_ESHAPE, "group_norm_grad: Mean is f32[1,1]");
}

const fl_test fl_tests[] = {
    {"group_norm normalises each group", normalises_each_group},
    {"group_norm needs no scale and bias", needs_no_scale_and_bias},
    {"group_norm says what does not fit", says_what_does_not_fit},
    {0},
};
