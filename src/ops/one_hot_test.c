/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void sets_one_of_depth(void)
{
    fl_check_op(&(fl_op_case){
        .type = "one_hot",
        .attr = {{"depth", FL_ATTR_INT, .i = 3}},
        .in = {{"X", {2, 1}, {2, 0}, .dtype = "i64", .lod = "0,2"}},
        .out =
            {{"Out", {2, 3}, {0, 0, 1, 1, 0, 0}, .dtype = "f32", .lod = "0,2"}},
    });
}

static void keeps_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("one_hot{depth=9} X=i64[-1,4,1]"),
              "Out=f32[-1,4,9]");
    CHECK_STR(fl_infer_text("one_hot{depth=9,dtype=6} X=i32[-1,1]"),
              "Out=f64[-1,9]");
}

static void refuses_what_is_outside(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "one_hot",
                  .attr = {{"depth", FL_ATTR_INT, .i = 3}},
                  .in = {{"X", {2, 1}, {2, 3}, .dtype = "i64"}},
              }),
              FL_EINVAL, "one_hot: X 1 is 3, depth is 3");
    CHECK_ERR(fl_infer_try("one_hot{depth=3} X=i64[2,2]"), FL_ESHAPE,
              "one_hot: X is [2,2], expected [.., 1]");
    CHECK_ERR(fl_infer_try("one_hot{depth=0} X=i64[2,1]"), FL_EINVAL,
              "one_hot: depth is 0, expected at least 1");
}

static void takes_its_depth_from_a_tensor(void)
{
    fl_check_op(&(fl_op_case){
        .type = "one_hot",
        .in = {{"X", {2, 1}, {1, 2}, .dtype = "i64", .lod = "0,2"},
               {"depth_tensor", {1}, {3}, .dtype = "i32"}},
        .out = {{"Out", {2, 3}, {0, 1, 0, 0, 0, 1}, "f32", .lod = "0,2"}},
    });
    CHECK_STR(fl_infer_text("one_hot X=i64[-1,1] depth_tensor=i32[1]"),
              "Out=f32[-1,-1]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "one_hot",
                  .in = {{"X", {1, 1}, {0}, .dtype = "i64"},
                         {"depth_tensor", {1}, {0}, .dtype = "i32"}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "one_hot: depth is 0, expected at least 1");
}

static void takes_real_numbers_that_are_whole(void)
{
    fl_check_op(&(fl_op_case){
        .type = "one_hot",
        .attr = {{"depth", FL_ATTR_INT, .i = 3}},
        .in = {{"X", {2, 1}, {0, 2}}},
        .out = {{"Out", {2, 3}, {1, 0, 0, 0, 0, 1}, "f32"}},
    });
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "one_hot",
                  .attr = {{"depth", FL_ATTR_INT, .i = 3}},
                  .in = {{"X", {1, 1}, {0.5}}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "one_hot: X 0 is -1, depth is 3");
}

const fl_test fl_tests[] = {
    {"one_hot sets one of depth", sets_one_of_depth},
    {"one_hot keeps the unknown batch", keeps_the_unknown_batch},
    {"one_hot refuses what is outside", refuses_what_is_outside},
    {"one_hot takes its depth from a tensor", takes_its_depth_from_a_tensor},
    {"one_hot takes real numbers that are whole",
     takes_real_numbers_that_are_whole},
    {0},
};
