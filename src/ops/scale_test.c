/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void multiplies_then_adds(void)
{
    fl_check_op(&(fl_op_case){
        .type = "scale",
        .attr = {{"scale", FL_ATTR_FLOAT, .f = 2},
                 {"bias", FL_ATTR_FLOAT, .f = 1}},
        .in = {{"X", {2, 2}, {1, 2, -3, 0}, .lod = "0,1,2"}},
        .out = {{"Out", {2, 2}, {3, 5, -5, 1}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void adds_then_multiplies_if_told(void)
{
    fl_check_op(&(fl_op_case){
        .type = "scale",
        .attr = {{"scale", FL_ATTR_FLOAT, .f = 2},
                 {"bias", FL_ATTR_FLOAT, .f = 1},
                 {"bias_after_scale", FL_ATTR_BOOL, .b = false}},
        .in = {{"X", {2}, {1, 2}}},
        .out = {{"Out", {2}, {4, 6}}},
        .grad = {"X"},
    });
}

static void copies_by_default(void)
{
    fl_check_op(&(fl_op_case){
        .type = "scale",
        .in = {{"X", {2}, {1, 2}}},
        .out = {{"Out", {2}, {1, 2}}},
        .grad = {"X"},
    });
}

static void works_in_place_and_on_whole_numbers(void)
{
    const char *types[] = {"i64", "i32"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = "scale",
            .attr = {{"scale", FL_ATTR_FLOAT, .f = -3},
                     {"bias", FL_ATTR_FLOAT, .f = 1}},
            .in = {{"X", {2}, {1, 2}, .dtype = types[i]}},
            .out = {{"Out", {2}, {-2, -5}, .dtype = types[i], .same = "X"}},
        });
}

static void scales_the_rows_that_are_there(void)
{
    const char *in_place[] = {NULL, "X"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = "scale",
            .attr = {{"scale", FL_ATTR_FLOAT, .f = 10}},
            .in = {{"X", {2, 2}, {1, 2, 3, 4}, .rows = "3,1", .height = 5}},
            .out = {{"Out",
                     {2, 2},
                     {10, 20, 30, 40},
                     .rows = "3,1",
                     .height = 5,
                     .same = in_place[i]}},
        });
}

static void keeps_kind_and_shape(void)
{
    CHECK_STR(fl_infer_text("scale X=f32[-1,8]/1"), "Out=f32[-1,8]/1");
    CHECK_STR(fl_infer_text("scale X=rows:f32[9,8]"), "Out=rows:f32[9,8]");
    CHECK_ERR(fl_infer_try("scale X=bool[2]"), FL_ESHAPE,
              "scale: X is bool, expected f32, f64, i64 or i32");
}

const fl_test fl_tests[] = {
    {"scale multiplies, then adds", multiplies_then_adds},
    {"scale adds, then multiplies if told so", adds_then_multiplies_if_told},
    {"scale copies by default", copies_by_default},
    {"scale works in place and on whole numbers",
     works_in_place_and_on_whole_numbers},
    {"scale scales the rows that are there", scales_the_rows_that_are_there},
    {"scale keeps kind and shape", keeps_kind_and_shape},
    {0},
};
