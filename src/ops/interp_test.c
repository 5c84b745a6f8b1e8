/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define SIZE(h, w)                                                             \
    {"out_h", FL_ATTR_INT, .i = h},                                            \
    {                                                                          \
        "out_w", FL_ATTR_INT, .i = w                                           \
    }

static void lies_between_four(void)
{
    fl_check_op(&(fl_op_case){
        .type = "bilinear_interp",
        .attr = {SIZE(3, 3)},
        .in = {{"X", {1, 1, 2, 2}, {1, 3, 5, 11}}},
        .out = {{"Out", {1, 1, 3, 3}, {1, 2, 3, 3, 5, 7, 5, 8, 11}}},
        .grad = {"X"},
    });
}

static void need_not_meet_in_the_corners(void)
{
    const fl_attr off = {"align_corners", FL_ATTR_BOOL, .b = false};
    fl_check_op(&(fl_op_case){
        .type = "bilinear_interp",
        .attr = {SIZE(1, 4), off},
        .in = {{"X", {1, 1, 1, 2}, {1, 3}}},
        .out = {{"Out", {1, 1, 1, 4}, {1, 2, 3, 3}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "bilinear_interp",
        .attr = {SIZE(1, 4), off, {"align_mode", FL_ATTR_INT, .i = 0}},
        .in = {{"X", {1, 1, 1, 2}, {1, 3}}},
        .out = {{"Out", {1, 1, 1, 4}, {1, 1.5, 2.5, 3}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "nearest_interp",
        .attr = {SIZE(1, 4), off},
        .in = {{"X", {1, 2, 1, 2}, {1, 3, 5, 7}}},
        .out = {{"Out", {1, 2, 1, 4}, {1, 1, 3, 3, 5, 5, 7, 7}}},
        .grad = {"X"},
    });
}

static void takes_the_size_of_a_variable(void)
{
    fl_check_op(&(fl_op_case){
        .type = "nearest_interp",
        .in = {{"X", {1, 1, 2, 2}, {1, 2, 3, 4}},
               {"OutSize", {2}, {1, 3}, .dtype = "i32"}},
        .out = {{"Out", {1, 1, 1, 3}, {1, 2, 2}}},
        .grad = {"X"},
    });
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "nearest_interp",
                  .in = {{"X", {1, 1, 1, 1}, {1}},
                         {"OutSize", {2}, {0, 3}, .dtype = "i32"}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "nearest_interp: OutSize is 0 by 3");
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("bilinear_interp{out_h=4,out_w=5} "
                            "X=f32[-1,3,-1,-1]"),
              "Out=f32[-1,3,4,5]");
    CHECK_STR(fl_infer_text("bilinear_interp X=f32[-1,3,2,2] OutSize=i32[2]"),
              "Out=f32[-1,3,-1,-1]");
    CHECK_ERR(fl_infer_try("bilinear_interp X=f32[1,3,2,2]"), FL_ESHAPE,
              "bilinear_interp: X is [1,3,2,2], out_h 0, out_w 0");
    CHECK_ERR(fl_infer_try("bilinear_interp_grad{out_h=4,out_w=5} "
                           "X=f32[1,3,2,2] Out@GRAD=f32[1,3,4,4]"),
              FL_ESHAPE, "bilinear_interp_grad: Out@GRAD is f32[1,3,4,4]");
}

static void refuses_what_memory_cannot_hold(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "bilinear_interp",
                  .attr = {{"out_h", FL_ATTR_INT, .i = INT32_MAX},
                           {"out_w", FL_ATTR_INT, .i = INT32_MAX}},
                  .in = {{"X", {1, 0, 2, 2}, .empty = true}},
                  .want = {"Out"},
              }),
              FL_ENOMEM, "is more than memory can hold");
}

const fl_test fl_tests[] = {
    {"bilinear_interp lies between four", lies_between_four},
    {"interp need not meet in the corners", need_not_meet_in_the_corners},
    {"interp takes the size of a variable", takes_the_size_of_a_variable},
    {"interp says what does not fit", says_what_does_not_fit},
    {"bilinear_interp refuses what memory cannot hold",
     refuses_what_memory_cannot_hold},
    {0},
};
