/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

/* X^T Out@GRAD is 4 -1 / 5 -1.5 / 6 -2. */
static void steps_down_the_gradient(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_mul_sgd",
        .in = {{"X", {2, 3}, {1, 2, 3, 2, 2, 2}},
               {"Out@GRAD", {2, 2}, {1, -0.5, 1.5, -0.25}},
               {"Param", {3, 2}, {1, 1, 1, 1, 1, 1}},
               {"LearningRate", {1}, {0.5}}},
        .out = {{"ParamOut",
                 {3, 2},
                 {-1, 1.5, -1.5, 1.75, -2, 2},
                 .same = "Param"}},
    });
}

static void flattens_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_mul_sgd",
        .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 2, 1}, {1, 2}},
               {"Out@GRAD", {1, 2, 1}, {3, 4}},
               {"Param", {1, 1}, {10}},
               {"LearningRate", {1}, {1}}},
        .out = {{"ParamOut", {1, 1}, {-1}}},
    });
}

static void tells_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("fused_mul_sgd X=f32[2,3] Out@GRAD=f32[2,5] "
                           "Param=f32[3,4] LearningRate=f32[1]"),
              FL_ESHAPE, "Out@GRAD is f32[2,5], expected f32[2,4]");
    CHECK_ERR(fl_infer_try("fused_mul_sgd X=f32[2,3] Out@GRAD=f32[2,4] "
                           "Param=f32[2,4] LearningRate=f32[1]"),
              FL_ESHAPE, "Param is f32[2,4], expected f32[3,-1]");
}

const fl_test fl_tests[] = {
    {"fused_mul_sgd steps down the gradient", steps_down_the_gradient},
    {"fused_mul_sgd flattens rows", flattens_rows},
    {"fused_mul_sgd tells what does not fit", tells_what_does_not_fit},
    {0},
};
