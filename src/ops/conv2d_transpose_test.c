/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void spreads_each_element(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d_transpose",
        .in = {{"Input", {1, 1, 2, 2}, {1, 2, 3, 4}},
               {"Filter", {1, 1, 2, 2}, {1, 10, 100, 1000}}},
        .out = {{"Output",
                 {1, 1, 3, 3},
                 {1, 12, 20, 103, 1234, 2040, 300, 3400, 4000}}},
        .grad = {"Input", "Filter"},
    });
}

static void strides_pads_and_groups(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d_transpose",
        .attr = {{"strides", FL_ATTR_INTS, FL_CASE_INTS(2, 2)},
                 {"paddings", FL_ATTR_INTS, FL_CASE_INTS(0, 1)}},
        .in = {{"Input", {1, 1, 1, 3}, {1, 2, 3}},
               {"Filter", {1, 2, 1, 3}, {1, 10, 100, 5, 6, 7}}},
        .out = {{"Output",
                 {1, 2, 1, 5},
                 {10, 102, 20, 203, 30, 6, 17, 12, 29, 18}}},
        .grad = {"Input", "Filter"},
    });
    fl_check_op(&(fl_op_case){
        .type = "depthwise_conv2d_transpose",
        .attr = {{"groups", FL_ATTR_INT, .i = 2},
                 {"dilations", FL_ATTR_INTS, FL_CASE_INTS(1, 2)}},
        .in = {{"Input", {2, 2, 1, 1}, {1, 2, 3, 4}},
               {"Filter", {2, 1, 1, 2}, {1, 2, 3, 4}}},
        .out = {{"Output",
                 {2, 2, 1, 3},
                 {1, 0, 2, 6, 0, 8, 3, 0, 6, 12, 0, 16}}},
        .grad = {"Input", "Filter"},
    });
}

static void may_be_a_little_larger(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d_transpose",
        .attr = {{"strides", FL_ATTR_INTS, FL_CASE_INTS(1, 2)},
                 {"output_size", FL_ATTR_INTS, FL_CASE_INTS(1, 4)}},
        .in = {{"Input", {1, 1, 1, 2}, {1, 2}}, {"Filter", {1, 1, 1, 1}, {3}}},
        .out = {{"Output", {1, 1, 1, 4}, {3, 0, 6, 0}}},
        .grad = {"Input", "Filter"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("conv2d_transpose{strides=[2,2]} "
                            "Input=f32[-1,3,4,4] Filter=f32[3,5,2,2]"),
              "Output=f32[-1,5,8,8]");
    CHECK_ERR(fl_infer_try("conv2d_transpose Input=f32[1,3,4,4] "
                           "Filter=f32[4,5,2,2]"),
              FL_ESHAPE,
              "conv2d_transpose: Input is f32[1,3,4,4], Filter "
              "f32[4,5,2,2] with 1 groups");
    CHECK_ERR(fl_infer_try("conv2d_transpose{output_size=[9,9]} "
                           "Input=f32[1,3,4,4] Filter=f32[3,5,2,2]"),
              FL_ESHAPE,
              "conv2d_transpose: Output would have 9 along dim 2, "
              "expected 1 or more, from 5 up to 5");
    CHECK_ERR(fl_infer_try("conv2d_transpose{strides=[0,1]} "
                           "Input=f32[1,3,4,4] Filter=f32[3,5,2,2]"),
              FL_EINVAL, "strides must be two numbers of 1 or more");
}

const fl_test fl_tests[] = {
    {"conv2d_transpose spreads each element", spreads_each_element},
    {"conv2d_transpose strides, pads and groups", strides_pads_and_groups},
    {"conv2d_transpose may be a little larger", may_be_a_little_larger},
    {"conv2d_transpose says what does not fit", says_what_does_not_fit},
    {0},
};
