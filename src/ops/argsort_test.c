/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void sorts_rows_and_columns(void)
{
    fl_check_op(&(fl_op_case){
        .type = "argsort",
        .in = {{"X", {2, 5}, {3, 1, 2, 1, 5, -1, 4, -2, 0, 9}, .lod = "0,2"}},
        .out = {{"Out", {2, 5}, {1, 1, 2, 3, 5, -2, -1, 0, 4, 9}, .lod = "0,2"},
                {"Indices",
                 {2, 5},
                 {1, 3, 2, 0, 4, 2, 0, 3, 1, 4},
                 .dtype = "i64",
                 .lod = "0,2"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "argsort",
        .attr = {{"axis", FL_ATTR_INT, .i = 0}},
        .in = {{"X", {3, 2}, {3, 1, 2, 7, 1, 5}, .dtype = "i64"}},
        .out = {{"Out", {3, 2}, {1, 1, 2, 5, 3, 7}, .dtype = "i64"},
                {"Indices", {3, 2}, {2, 0, 1, 2, 0, 1}, .dtype = "i64"}},
    });
}

static void takes_nothing_and_one(void)
{
    fl_check_op(&(fl_op_case){
        .type = "argsort",
        .in = {{"X", {0, 3}, .empty = true}},
        .out = {{"Out", {0, 3}, .empty = true}},
        .want = {"Indices"},
    });
    fl_check_op(&(fl_op_case){
        .type = "argsort",
        .in = {{"X", {2, 1}, {2, 1}}},
        .out = {{"Out", {2, 1}, {2, 1}},
                {"Indices", {2, 1}, {0, 0}, .dtype = "i64"}},
    });
}

static void puts_what_is_no_number_last(void)
{
    fl_check_op(&(fl_op_case){
        .type = "argsort",
        .in = {{"X", {4}, {NAN, 2, -INFINITY, 1}}},
        .out = {{"Indices", {4}, {2, 3, 1, 0}, .dtype = "i64"}},
        .want = {"Out"},
    });
}

static void knows_its_shapes(void)
{
    CHECK_STR(fl_infer_text("argsort X=f32[-1,8]"),
              "Out=f32[-1,8] Indices=i64[-1,8]");
    CHECK_ERR(fl_infer_try("argsort{axis=2} X=f32[2,3]"), FL_ESHAPE, "axis");
    CHECK_ERR(fl_infer_try("argsort X=bool[2,3]"), FL_ESHAPE,
              "argsort: X is bool, expected f32, f64, i64 or i32");
}

const fl_test fl_tests[] = {
    {"argsort sorts rows and columns", sorts_rows_and_columns},
    {"argsort takes nothing and one", takes_nothing_and_one},
    {"argsort puts what is no number last", puts_what_is_no_number_last},
    {"argsort knows its shapes", knows_its_shapes},
    {0},
};
