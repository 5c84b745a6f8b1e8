/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void cuts_two_axes(void)
{
    fl_check_op(&(fl_op_case){
        .type = "slice",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(0, 2)},
                 {"starts", FL_ATTR_INTS, FL_CASE_INTS(1, 0)},
                 {"ends", FL_ATTR_INTS, FL_CASE_INTS(2, 1)}},
        .in = {{"Input", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        .out = {{"Out", {1, 2, 1}, {5, 7}}},
        .grad = {"Input"},
    });
}

static void counts_from_the_end_and_stays_within(void)
{
    fl_check_op(&(fl_op_case){
        .type = "slice",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(1)},
                 {"starts", FL_ATTR_INTS, FL_CASE_INTS(-2)},
                 {"ends", FL_ATTR_INTS, FL_CASE_INTS(1000)}},
        .in = {{"Input", {2, 3}, {1, 2, 3, 4, 5, 6}, .lod = "0,2"}},
        .out = {{"Out", {2, 2}, {2, 3, 5, 6}, .lod = "0,2"}},
        .grad = {"Input"},
    });
    fl_check_op(&(fl_op_case){
        .type = "slice",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(-2)},
                 {"starts", FL_ATTR_INTS, FL_CASE_INTS(-9)},
                 {"ends", FL_ATTR_INTS, FL_CASE_INTS(-1)}},
        .in = {{"Input", {2, 2}, {1, 2, 3, 4}, .dtype = "i64", .lod = "0,2"}},
        .out = {{"Out", {1, 2}, {1, 2}, .dtype = "i64", .lod = ""}},
    });
}

static void drops_axes_that_became_one(void)
{
    fl_check_op(&(fl_op_case){
        .type = "slice",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(0)},
                 {"starts", FL_ATTR_INTS, FL_CASE_INTS(1)},
                 {"ends", FL_ATTR_INTS, FL_CASE_INTS(2)},
                 {"decrease_axis", FL_ATTR_INTS, FL_CASE_INTS(0)}},
        .in = {{"Input", {2, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {3}, {4, 5, 6}}},
        .grad = {"Input"},
    });
    fl_check_op(&(fl_op_case){
        .type = "slice",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(0)},
                 {"starts", FL_ATTR_INTS, FL_CASE_INTS(2)},
                 {"ends", FL_ATTR_INTS, FL_CASE_INTS(3)},
                 {"decrease_axis", FL_ATTR_INTS, FL_CASE_INTS(0)}},
        .in = {{"Input", {3}, {1, 2, 3}}},
        .out = {{"Out", {1}, {3}}},
        .grad = {"Input"},
    });
}

static void keeps_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("slice{axes=[1],starts=[0],ends=[2]} "
                            "Input=f32[-1,8]/1"),
              "Out=f32[-1,2]/1");
    CHECK_STR(fl_infer_text("slice{axes=[0],starts=[0],ends=[2]} "
                            "Input=f32[-1,8]/1"),
              "Out=f32[-1,8]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("slice{axes=[1,-1],starts=[1,0],ends=[2,9]} "
                           "Input=f32[2,2]"),
              FL_EINVAL, "slice: axis 1 is cut twice");
    CHECK_ERR(fl_infer_try("slice{axes=[0],starts=[2],ends=[1]} "
                           "Input=f32[4]"),
              FL_ESHAPE,
              "slice: axis 0 has 4 elements, and none of them lies in 2 to 1");
    CHECK_ERR(fl_infer_try("slice{axes=[0],starts=[2,1],ends=[1]} "
                           "Input=f32[4]"),
              FL_EINVAL, "slice: 1 axes, 2 starts, 1 ends");
    CHECK_ERR(fl_infer_try("slice{axes=[1],starts=[0],ends=[1]} "
                           "Input=f32[4]"),
              FL_ESHAPE, "slice: axis 1 is not an axis of Input [4]");
    CHECK_ERR(fl_infer_try("slice{axes=[0],starts=[0],ends=[2],"
                           "decrease_axis=[0]} Input=f32[4]"),
              FL_ESHAPE, "slice: decrease_axis 0 has 2 left, not 1");
}

const fl_test fl_tests[] = {
    {"slice cuts two axes", cuts_two_axes},
    {"slice counts from the end and stays within",
     counts_from_the_end_and_stays_within},
    {"slice drops axes that became one", drops_axes_that_became_one},
    {"slice keeps the unknown batch", keeps_the_unknown_batch},
    {"slice says what is wrong", says_what_is_wrong},
    {0},
};
