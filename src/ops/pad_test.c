/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void puts_a_frame_around(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pad",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(1, 0, 0, 2)},
                 {"pad_value", FL_ATTR_FLOAT, .f = 9}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {3, 4}, {9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}}},
        .grad = {"X"},
    });
}

static void keeps_sequences_whose_rows_stay(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pad",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(0, 0, 1, 0)}},
        .in = {{"X", {2, 1}, {1, 2}, .lod = "0,1,2"}},
        .out = {{"Out", {2, 2}, {0, 1, 0, 2}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("pad{paddings=[0,0,1,2]} X=f32[-1,8]"),
              "Out=f32[-1,11]");
    CHECK_ERR(fl_infer_try("pad{paddings=[0,0]} X=f32[-1,8]"), FL_EINVAL,
              "pad: 2 paddings for X with 2 dims");
    CHECK_ERR(fl_infer_try("pad{paddings=[0,0,-1,0]} X=f32[-1,8]"), FL_EINVAL,
              "pad: paddings has -1");
}

static void fills_up_to_a_shape(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pad_constant_like",
        .attr = {{"pad_value", FL_ATTR_FLOAT, .f = 9}},
        .in = {{"X", {2, 3}, {1, 1, 1, 1, 1, 1}}, {"Y", {1, 2}, {4, 5}}},
        .out = {{"Out", {2, 3}, {4, 5, 9, 9, 9, 9}}},
        .grad = {"Y"},
    });
    CHECK_STR(fl_infer_text("pad_constant_like X=f32[-1,8] Y=f32[-1,3]"),
              "Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("pad_constant_like X=f32[2,3] Y=f32[2,4]"),
              FL_ESHAPE,
              "pad_constant_like: Y f32[2,4] is not within X f32[2,3]");
    CHECK_ERR(fl_infer_try("pad_constant_like_grad Y=f32[2,4] "
                           "Out@GRAD=f32[2,3]"),
              FL_ESHAPE, "is not within Out@GRAD f32[2,3]");
}

static void cuts_a_part_out(void)
{
    fl_check_op(&(fl_op_case){
        .type = "crop",
        .attr = {{"offsets", FL_ATTR_INTS, FL_CASE_INTS(0, 1)},
                 {"shape", FL_ATTR_INTS, FL_CASE_INTS(-1, 2)}},
        .in = {{"X", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        .out = {{"Out", {2, 2}, {2, 3, 6, 7}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "crop",
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"Y", {1, 2}, {0, 0}}},
        .out = {{"Out", {1, 2}, {1, 2}}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("crop{offsets=[0,2],shape=[-1,3]} X=f32[-1,8]"),
              "Out=f32[-1,3]");
    CHECK_ERR(
        fl_infer_try("crop{offsets=[0,2],shape=[1,3]} X=f32[2,4]"), FL_ESHAPE,
        "crop: 3 elements from 2 on are not within dim 1 of X, which has 4");
    CHECK_ERR(
        fl_infer_try("crop{offsets=[0,-1],shape=[1,3]} X=f32[2,4]"), FL_ESHAPE,
        "crop: 3 elements from -1 on are not within dim 1 of X, which has 4");
    CHECK_ERR(fl_infer_try("crop{shape=[1]} X=f32[2,4]"), FL_ESHAPE,
              "crop: X has 2 dims, the shape 1, there are 0 offsets");
}

const fl_test fl_tests[] = {
    {"pad_constant_like fills up to a shape", fills_up_to_a_shape},
    {"crop cuts a part out", cuts_a_part_out},
    {"pad puts a frame around", puts_a_frame_around},
    {"pad keeps sequences whose rows stay", keeps_sequences_whose_rows_stay},
    {"pad says what is wrong", says_what_is_wrong},
    {0},
};
