/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void adds_squares(void)
{
    fl_check_op(&(fl_op_case){
        .type = "squared_l2_norm",
        .in = {{"X", {2, 2}, {1, -2, 3, 0.5}}},
        .out = {{"Out", {1}, {14.25}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "squared_l2_norm",
        .in = {{"X", {0, 2}, .empty = true}},
        .out = {{"Out", {1}, {0}}},
    });
}

static void gives_one_number(void)
{
    CHECK_STR(fl_infer_text("squared_l2_norm X=f32[-1,8]"), "Out=f32[1]");
    CHECK_ERR(fl_infer_try("squared_l2_norm X=i64[2]"), FL_ESHAPE,
              "squared_l2_norm: X is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("squared_l2_norm_grad X=f32[2] Out@GRAD=f32[0]"),
              FL_ESHAPE, "Out@GRAD is f32[0], expected f32[1]");
}

const fl_test fl_tests[] = {
    {"squared_l2_norm adds squares", adds_squares},
    {"squared_l2_norm gives one number", gives_one_number},
    {0},
};
