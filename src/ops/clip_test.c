/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void keeps_elements_within_limits(void)
{
    fl_check_op(&(fl_op_case){
        .type = "clip",
        .attr = {{"min", FL_ATTR_FLOAT, .f = -1},
                 {"max", FL_ATTR_FLOAT, .f = 2}},
        .in = {{"X", {2, 3}, {-3, -0.5, 0, 1.5, 2.5, 9}}},
        .out = {{"Out", {2, 3}, {-1, -0.5, 0, 1.5, 2, 2}}},
        .grad = {"X"},
    });
}

static void works_in_place_and_keeps_nan(void)
{
    fl_check_op(&(fl_op_case){
        .type = "clip",
        .attr = {{"min", FL_ATTR_FLOAT, .f = -1},
                 {"max", FL_ATTR_FLOAT, .f = 2}},
        .in = {{"X", {3}, {NAN, INFINITY, -INFINITY}}},
        .out = {{"Out", {3}, {NAN, 2, -1}, .same = "X"}},
    });
}

static void adds_equal_rows_before(void)
{
    const char *in_place[] = {NULL, "X"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = "clip",
            .attr = {{"min", FL_ATTR_FLOAT, .f = -1},
                     {"max", FL_ATTR_FLOAT, .f = 2}},
            .in =
                {{"X", {3, 1}, {1.5, 9, -0.25}, .rows = "3,1,3", .height = 5}},
            .out = {{"Out",
                     {2, 1},
                     {2, 1.25},
                     .rows = "1,3",
                     .height = 5,
                     .same = in_place[i]}},
        });
}

static void refuses_bad_limits(void)
{
    CHECK_STR(fl_infer_text("clip{min=0.,max=1.} X=rows:f32[9,8]"),
              "Out=rows:f32[9,8]");
    CHECK_ERR(fl_infer_try("clip{min=2.,max=1.} X=f32[2]"), FL_EINVAL,
              "clip: min is 2, max is 1");
    CHECK_ERR(fl_infer_try("clip{min=2.} X=f32[2]"), FL_EINVAL,
              "clip: attribute max is missing");
    CHECK_ERR(fl_infer_try("clip{min=0.,max=1.} X=i64[2]"), FL_ESHAPE,
              "clip: X is i64, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"clip keeps elements within limits", keeps_elements_within_limits},
    {"clip works in place and keeps NaN", works_in_place_and_keeps_nan},
    {"clip adds equal rows up before", adds_equal_rows_before},
    {"clip refuses bad limits", refuses_bad_limits},
    {0},
};
