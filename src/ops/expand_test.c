/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void repeats_rows_and_columns(void)
{
    fl_check_op(&(fl_op_case){
        .type = "expand",
        .attr = {{"expand_times", FL_ATTR_INTS, FL_CASE_INTS(2, 3)}},
        .in = {{"X", {1, 2}, {1, 2}}},
        .out = {{"Out", {2, 6}, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}}},
        .grad = {"X"},
    });
}

static void repeats_a_column(void)
{
    fl_check_op(&(fl_op_case){
        .type = "expand",
        .attr = {{"expand_times", FL_ATTR_INTS, FL_CASE_INTS(1, 1, 3)}},
        .in = {{"X", {2, 2, 1}, {1, 2, 3, 4}, .lod = "0,1,2"}},
        .out = {{"Out",
                 {2, 2, 3},
                 {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4},
                 .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void repeats_nothing(void)
{
    fl_check_op(&(fl_op_case){
        .type = "expand",
        .attr = {{"expand_times", FL_ATTR_INTS, FL_CASE_INTS(2, 2)}},
        .in = {{"X", {0, 2}, .empty = true, .dtype = "i64"}},
        .out = {{"Out", {0, 4}, .empty = true, .dtype = "i64"}},
    });
}

static void keeps_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("expand{expand_times=[2,3]} X=f32[-1,8]"),
              "Out=f32[-1,24]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("expand{expand_times=[2]} X=f32[2,8]"), FL_ESHAPE,
              "expand: 1 expand_times, X [2,8] has 2 dims");
    CHECK_ERR(fl_infer_try("expand{expand_times=[0]} X=f32[2]"), FL_EINVAL,
              "expand: expand_times 0 is 0, expected at least 1");
}

static void takes_its_numbers_from_tensors(void)
{
    fl_check_op(&(fl_op_case){
        .type = "expand",
        .in = {{"X", {1, 2}, {1, 2}},
               {"ExpandTimes", {2}, {2, 2}, .dtype = "i32"}},
        .out = {{"Out", {2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "expand",
        .in = {{"X", {1, 2}, {1, 2}},
               {"expand_times_tensor", {1}, {3}, .dtype = "i32"},
               {"expand_times_tensor", {1}, {1}, .dtype = "i32"}},
        .out = {{"Out", {3, 2}, {1, 2, 1, 2, 1, 2}}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("expand X=f32[2,3] ExpandTimes=i32[2]"),
              "Out=f32[-1,-1]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "expand",
                  .in = {{"X", {1, 2}, {1, 2}},
                         {"ExpandTimes", {1}, {2}, .dtype = "i32"}},
                  .want = {"Out"},
              }),
              FL_ESHAPE, "expand: 1 expand_times, X [1,2] has 2 dims");
    CHECK_ERR(fl_infer_try("expand_grad X=f32[2,3] Out@GRAD=f32[4,4]"),
              FL_ESHAPE,
              "expand_grad: Out@GRAD is [4,4], which is no multiple of X "
              "[2,3]");
}

const fl_test fl_tests[] = {
    {"expand repeats rows and columns", repeats_rows_and_columns},
    {"expand repeats a column", repeats_a_column},
    {"expand repeats nothing", repeats_nothing},
    {"expand keeps the unknown batch", keeps_the_unknown_batch},
    {"expand says what is wrong", says_what_is_wrong},
    {"expand takes its numbers from tensors", takes_its_numbers_from_tensors},
    {0},
};
