/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void keeps_the_first_of_each(void)
{
    fl_check_op(&(fl_op_case){
        .type = "unique",
        .in = {{"X", {6}, {2, 3, 3, 1, 5, 3}}},
        .out = {{"Out", {4}, {2, 3, 1, 5}},
                {"Index", {6}, {0, 1, 1, 2, 3, 1}, .dtype = "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "unique_with_counts",
        .attr = {{"dtype", FL_ATTR_INT, .i = FL_I64}},
        .in = {{"X", {4}, {7, -1, 7, 7}, .dtype = "i64"}},
        .out = {{"Out", {2}, {7, -1}, .dtype = "i64"},
                {"Index", {4}, {0, 1, 0, 0}, .dtype = "i64"},
                {"Count", {2}, {3, 1}, .dtype = "i64"}},
    });
}

static void takes_nothing(void)
{
    fl_check_op(&(fl_op_case){
        .type = "unique",
        .in = {{"X", {0}, .empty = true}},
        .out = {{"Out", {0}, .empty = true}},
        .want = {"Index"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("unique X=i64[-1]"), "Out=i64[-1] Index=i32[-1]");
    CHECK_STR(fl_infer_text("unique_with_counts{dtype=3} X=f32[9]"),
              "Out=f32[-1] Index=i64[9] Count=i64[-1]");
    CHECK_ERR(fl_infer_try("unique X=i64[2,3]"), FL_ESHAPE,
              "unique: X is [2,3], dtype is i32, expected [n], i32 or i64");
    CHECK_ERR(fl_infer_try("unique{dtype=5} X=i64[2]"), FL_ESHAPE,
              "unique: X is [2], dtype is f32, expected [n], i32 or i64");
}

const fl_test fl_tests[] = {
    {"unique keeps the first of each", keeps_the_first_of_each},
    {"unique takes nothing", takes_nothing},
    {"unique says what does not fit", says_what_does_not_fit},
    {0},
};
