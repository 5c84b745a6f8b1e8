/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void counts_rows_that_hold_the_label(void)
{
    fl_check_op(&(fl_op_case){
        .type = "accuracy",
        .in = {{"Out", {4, 2}, {9, 8, 9, 8, 9, 8, 9, 8}},
               {"Indices", {4, 2}, {1, 0, 2, 1, 0, 2, 2, 2}, "i64"},
               {"Label", {4, 1}, {1, 1, 1, 2}, "i64"}},
        .out = {{"Accuracy", {1}, {0.75}, "f32"},
                {"Correct", {1}, {3}, "i32"},
                {"Total", {1}, {4}, "i32"}},
    });
}

static void of_no_rows_is_zero(void)
{
    fl_check_op(&(fl_op_case){
        .type = "accuracy",
        .in = {{"Out", {0, 1}, .empty = true},
               {"Indices", {0, 1}, .dtype = "i64", .empty = true},
               {"Label", {0, 1}, .dtype = "i64", .empty = true}},
        .out = {{"Accuracy", {1}, {0}, "f32"}, {"Total", {1}, {0}, "i32"}},
        .want = {"Correct"},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("accuracy Out=f32[-1,2] Indices=i64[-1,2] "
                            "Label=i64[-1,1]"),
              "Accuracy=f32[1] Correct=i32[1] Total=i32[1]");
    CHECK_ERR(fl_infer_try("accuracy Out=f32[4,2] Indices=i64[4,2] "
                           "Label=i64[3,1]"),
              FL_ESHAPE, "accuracy: Label is i64[3,1], expected i64[4,1]");
}

const fl_test fl_tests[] = {
    {"accuracy counts rows that hold the label",
     counts_rows_that_hold_the_label},
    {"accuracy of no rows is zero", of_no_rows_is_zero},
    {"accuracy knows its shapes", knows_shapes},
    {0},
};
