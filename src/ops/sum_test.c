/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void adds_tensors(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sum",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .lod = "0,1,2"},
               {"X", {2, 2}, {10, 20, 30, 40}},
               {"X", {2, 2}, {5, 5, 5, -5}}},
        .out = {{"Out", {2, 2}, {16, 27, 38, 39}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void adds_in_place(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sum",
        .in = {{"X", {2}, {1, 2}}, {"X", {2}, {10, 20}}},
        .out = {{"Out", {2}, {11, 22}, .same = "X"}},
    });
}

/* (1e8 + -1e8) + 1 is 1 in f32; in another order it is 0. Out is the last. */
static void adds_in_order_wherever_out_is(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sum",
        .in = {{"X", {1}, {1e8}}, {"X", {1}, {-1e8}}, {"X", {1}, {1}}},
        .out = {{"Out", {1}, {1}, .same = "X.2"}},
    });
}

static void adds_whole_numbers(void)
{
    const char *types[] = {"i64", "i32"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = "sum",
            .in = {{"X", {2}, {1, 2}, .dtype = types[i]},
                   {"X", {2}, {3, -9}, .dtype = types[i]}},
            .out = {{"Out", {2}, {4, -7}, .dtype = types[i]}},
        });
}

static void adds_equal_rows_up(void)
{
    const char *out[] = {NULL, "X", "X.1"};
    for (int i = 0; i < 3; i++)
        fl_check_op(&(fl_op_case){
            .type = "sum",
            .in = {{"X", {2, 2}, {1, 2, 3, 4}, .rows = "5,1", .height = 7},
                   {"X", {2, 2}, {10, 20, 30, 40}, .rows = "1,0", .height = 7}},
            .out = {{"Out",
                     {3, 2},
                     {30, 40, 13, 24, 1, 2},
                     .rows = "0,1,5",
                     .height = 7,
                     .same = out[i]}},
        });
}

static void passes_inputs_without_rows_over(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sum",
        .in = {{"X", {0, 2}, .rows = "", .height = 7, .empty = true},
               {"X", {1, 2}, {10, 20}, .rows = "1", .height = 7}},
        .out = {{"Out", {1, 2}, {10, 20}, .rows = "1", .height = 7}},
    });
    fl_check_op(&(fl_op_case){
        .type = "sum",
        .in = {{"X", {0, 2}, .rows = "", .height = 7, .empty = true},
               {"X", {0, 2}, .rows = "", .height = 7, .empty = true}},
        .out = {{"Out", {0, 2}, .rows = "", .height = 7, .empty = true}},
    });
}

static void adds_rows_into_a_tensor(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sum",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .rows = "2,2", .height = 3},
               {"X", {3, 2}, {10, 20, 30, 40, 50, 60}}},
        .out = {{"Out", {3, 2}, {10, 20, 30, 40, 54, 66}}},
    });
}

static void refuses_a_row_beyond_the_height(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sum",
                  .in = {{"X", {2, 1}, {1, 2}},
                         {"X", {1, 1}, {1}, .rows = "2", .height = 2}},
              }),
              FL_EINVAL, "sum: X[1] has row 2, its height is 2");
}

static void knows_kinds_and_shapes(void)
{
    CHECK_STR(fl_infer_text("sum X=f32[-1,8] X=f32[4,8]"), "Out=f32[-1,8]");
    CHECK_STR(fl_infer_text("sum X=rows:f32[9,8] X=rows:f32[9,8]"),
              "Out=rows:f32[9,8]");
    CHECK_STR(fl_infer_text("sum X=rows:f32[9,8] X=f32[9,8]"), "Out=f32[9,8]");
    CHECK_ERR(fl_infer_try("sum X=f32[2,3] X=f32[2,4]"), FL_ESHAPE,
              "sum: X[0] is f32[2,3], X[1] is f32[2,4]");
    CHECK_ERR(fl_infer_try("sum X=f32[2] X=f64[2]"), FL_ESHAPE,
              "sum: X[0] is f32[2], X[1] is f64[2]");
    CHECK_ERR(fl_infer_try("sum X=rows:i64[2,2]"), FL_ESHAPE,
              "sum: X[0] is rows of i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("sum X=bool[2]"), FL_ESHAPE, "sum: X is bool");
    CHECK_ERR(fl_infer_try("sum"), FL_EINVAL, "sum: input X is missing");
}

const fl_test fl_tests[] = {
    {"sum adds tensors", adds_tensors},
    {"sum adds in place", adds_in_place},
    {"sum adds in order, wherever Out is", adds_in_order_wherever_out_is},
    {"sum adds whole numbers", adds_whole_numbers},
    {"sum adds equal rows up", adds_equal_rows_up},
    {"sum passes inputs without rows over", passes_inputs_without_rows_over},
    {"sum adds rows into a tensor", adds_rows_into_a_tensor},
    {"sum refuses a row beyond the height", refuses_a_row_beyond_the_height},
    {"sum knows kinds and shapes", knows_kinds_and_shapes},
    {0},
};
