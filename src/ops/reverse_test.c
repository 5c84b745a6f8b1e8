/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void turns_one_dimension_or_several(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reverse",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(-1)}},
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}, .lod = "0,2"}},
        .out = {{"Out", {2, 3}, {3, 2, 1, 6, 5, 4}, .lod = "0,2"}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "reverse",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(0, 2)}},
        .in = {{"X", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        .out = {{"Out", {2, 2, 2}, {6, 5, 8, 7, 2, 1, 4, 3}}},
        .grad = {"X"},
    });
}

static void takes_whole_numbers_and_nothing(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reverse",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(0)}},
        .in = {{"X", {3}, {1, 2, 3}, .dtype = "i64"}},
        .out = {{"Out", {3}, {3, 2, 1}, .dtype = "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "reverse",
        .attr = {{"axis", FL_ATTR_INTS, FL_CASE_INTS(0)}},
        .in = {{"X", {0, 2}, .empty = true}},
        .out = {{"Out", {0, 2}, .empty = true}},
    });
}

static void keeps_the_shape(void)
{
    CHECK_STR(fl_infer_text("reverse{axis=[1]} X=f32[-1,8]/1"),
              "Out=f32[-1,8]/1");
    CHECK_STR(fl_infer_text("reverse{axis=[0]} X=f32[-1,8]/1"),
              "Out=f32[-1,8]");
}

static void refuses_an_axis_that_is_not_there(void)
{
    CHECK_ERR(fl_infer_try("reverse{axis=[2]} X=f32[2,3]"), FL_ESHAPE,
              "reverse: axis 2 is not an axis of X [2,3]");
    CHECK_ERR(fl_infer_try("reverse{axis=[]} X=f32[2,3]"), FL_EINVAL,
              "reverse: axis names no dimension");
}

const fl_test fl_tests[] = {
    {"reverse turns one dimension or several", turns_one_dimension_or_several},
    {"reverse takes whole numbers and nothing",
     takes_whole_numbers_and_nothing},
    {"reverse keeps the shape", keeps_the_shape},
    {"reverse refuses an axis that is not there",
     refuses_an_axis_that_is_not_there},
    {0},
};
