/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void turns_a_matrix(void)
{
    fl_check_op(&(fl_op_case){
        .type = "transpose",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(1, 0)}},
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {3, 2}, {1, 4, 2, 5, 3, 6}}},
        .grad = {"X"},
    });
}

static void turns_three_dimensions(void)
{
    fl_check_op(&(fl_op_case){
        .type = "transpose2",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(2, 0, 1)}},
        .in = {{"X", {2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}},
        .out = {{"Out", {3, 2, 2}, {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}},
                {"XShape", {0, 2, 2, 3}, .empty = true}},
        .grad = {"X"},
    });
}

static void moves_runs_and_small_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "transpose2",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(1, 0, 2)}},
        .in = {{"X", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, .dtype = "u8"}},
        .out = {{"Out", {2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8}, .dtype = "u8"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "transpose",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(1, 0)}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .dtype = "i16"}},
        .out = {{"Out", {2, 2}, {1, 3, 2, 4}, .dtype = "i16"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "transpose",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(1, 0, 2)}},
        .in = {{"X", {0, 2, 2}, .empty = true}},
        .out = {{"Out", {2, 0, 2}, .empty = true}},
    });
}

static void keeps_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("transpose2{axis=[1,0]} X=f32[-1,8]"),
              "Out=f32[8,-1] XShape=f32[0,-1,8]");
}

static void says_which_axis_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("transpose{axis=[0]} X=f32[2,3]"), FL_ESHAPE,
              "transpose: axis has 1 numbers, X [2,3] has 2 dims");
    CHECK_ERR(
        fl_infer_try("transpose2{axis=[1,1]} X=f32[2,3]"), FL_ESHAPE,
        "transpose2: axis 1 is listed twice, or is not an axis of X [2,3]");
}

static void gradients_refuse_another_shape(void)
{
    CHECK_ERR(fl_infer_try("transpose2_grad{axis=[1,1]} XShape=f32[0,2,2] "
                           "Out@GRAD=f32[2,2]"),
              FL_ESHAPE, "transpose2_grad: Out@GRAD is [2,2], but XShape");
    CHECK_ERR(fl_infer_try("transpose2_grad{axis=[1,0]} XShape=f32[0,2,3] "
                           "Out@GRAD=f32[2,3]"),
              FL_ESHAPE,
              "transpose2_grad: Out@GRAD is [2,3], but XShape is [0,2,3]");
    CHECK_ERR(fl_infer_try("transpose_grad{axis=[1,0]} X=f32[2,3] "
                           "Out@GRAD=f32[2,3]"),
              FL_ESHAPE,
              "transpose_grad: Out@GRAD is f32[2,3], expected f32[3,2]");
}

const fl_test fl_tests[] = {
    {"transpose turns a matrix", turns_a_matrix},
    {"transpose2 turns three dimensions", turns_three_dimensions},
    {"transpose moves runs and small elements", moves_runs_and_small_elements},
    {"transpose2 keeps the unknown batch", keeps_the_unknown_batch},
    {"transpose says which axis is wrong", says_which_axis_is_wrong},
    {"transpose's gradients refuse another shape",
     gradients_refuse_another_shape},
    {0},
};
