/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void joins_columns(void)
{
    fl_check_op(&(fl_op_case){
        .type = "concat",
        .attr = {{"axis", FL_ATTR_INT, .i = 1}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}, {"X", {2, 1}, {5, 6}}},
        .out = {{"Out", {2, 3}, {1, 2, 5, 3, 4, 6}}},
        .grad = {"X"},
    });
}

static void joins_rows_of_three_along_a_negative_axis(void)
{
    fl_check_op(&(fl_op_case){
        .type = "concat",
        .attr = {{"axis", FL_ATTR_INT, .i = -3}},
        .in = {{"X", {1, 2, 2}, {1, 2, 3, 4}},
               {"X", {0, 2, 2}, .empty = true},
               {"X", {2, 2, 2}, {5, 6, 7, 8, 9, 10, 11, 12}}},
        .out = {{"Out", {3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}},
        .grad = {"X"},
    });
}

static void moves_whole_numbers(void)
{
    fl_check_op(&(fl_op_case){
        .type = "concat",
        .in = {{"X", {1}, {7}, .dtype = "i64"},
               {"X", {2}, {8, 9}, .dtype = "i64"}},
        .out = {{"Out", {3}, {7, 8, 9}, .dtype = "i64"}},
    });
}

static void joins_sequences_with_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "concat",
        .in = {{"X", {3, 1}, {1, 2, 3}, .lod = "0,2;0,1,3"},
               {"X", {2, 1}, {4, 5}, .lod = "0,1;0,2"}},
        .out = {{"Out", {5, 1}, {1, 2, 3, 4, 5}, .lod = "0,2,3;0,1,3,5"}},
    });
}

static void keeps_sequences_when_columns_join(void)
{
    fl_check_op(&(fl_op_case){
        .type = "concat",
        .attr = {{"axis", FL_ATTR_INT, .i = 1}},
        .in = {{"X", {2, 1}, {1, 2}, .lod = "0,2"}, {"X", {2, 1}, {3, 4}}},
        .out = {{"Out", {2, 2}, {1, 3, 2, 4}, .lod = "0,2"}},
    });
}

static void drops_sequences_that_only_some_have(void)
{
    fl_check_op(&(fl_op_case){
        .type = "concat",
        .in = {{"X", {2, 1}, {1, 2}, .lod = "0,2"}, {"X", {1, 1}, {3}}},
        .out = {{"Out", {3, 1}, {1, 2, 3}, .lod = ""}},
    });
}

static void knows_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("concat{axis=1} X=f32[-1,3] X=f32[-1,4]"),
              "Out=f32[-1,7]");
    CHECK_STR(fl_infer_text("concat{axis=-1} X=f32[-1,3] X=f32[5,-1]"),
              "Out=f32[5,-1]");
}

static void says_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("concat{axis=1} X=f32[2,3] X=f32[3,3]"), FL_ESHAPE,
              "concat: X 0 is [2,3], but X 1 is [3,3], which differ outside "
              "axis 1");
    CHECK_ERR(fl_infer_try("concat{axis=2} X=f32[2,3] X=f32[2,3]"), FL_ESHAPE,
              "concat: axis 2 is not an axis of X [2,3]");
    CHECK_ERR(fl_infer_try("concat X=f32[2,3] X=i64[2,3]"), FL_ESHAPE,
              "concat: X 0 is f32, but X 1 is i64");
}

static void gradient_refuses_another_shape(void)
{
    CHECK_ERR(fl_infer_try("concat_grad{axis=1} X=f32[2,3] X=f32[2,4] "
                           "Out@GRAD=f32[2,8]"),
              FL_ESHAPE,
              "concat_grad: Out@GRAD is f32[2,8], expected f32[2,7]");
    CHECK_ERR(fl_infer_try("concat X=rows:f32[2,3] X=f32[2,3]"), FL_ESHAPE,
              "concat: X is selected_rows, expected a tensor");
}

const fl_test fl_tests[] = {
    {"concat joins columns", joins_columns},
    {"concat joins rows of three along a negative axis",
     joins_rows_of_three_along_a_negative_axis},
    {"concat moves whole numbers", moves_whole_numbers},
    {"concat joins sequences with rows", joins_sequences_with_rows},
    {"concat keeps sequences when columns join",
     keeps_sequences_when_columns_join},
    {"concat drops sequences that only some have",
     drops_sequences_that_only_some_have},
    {"concat knows the unknown batch", knows_the_unknown_batch},
    {"concat says what does not fit", says_what_does_not_fit},
    {"concat's gradient refuses another shape", gradient_refuses_another_shape},
    {0},
};
