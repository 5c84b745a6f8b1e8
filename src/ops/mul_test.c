/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void multiplies_matrices(void)
{
    fl_check_op(&(fl_op_case){
        .type = "mul",
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}, .lod = "0,2"},
               {"Y", {3, 2}, {1, -1, 2, 0, 0.5, 3}}},
        .out = {{"Out", {2, 2}, {6.5, 8, 17, 14}, .lod = "0,2"}},
        .grad = {"X", "Y"},
    });
}

static void flattens_by_col_dims(void)
{
    fl_check_op(&(fl_op_case){
        .type = "mul",
        .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 2},
                 {"y_num_col_dims", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 2, 2}, {1, 2, 3, 4}},
               {"Y", {1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {1, 2, 1, 3}, {9, 12, 15, 19, 26, 33}}},
        .grad = {"X", "Y"},
    });
}

static void multiplies_no_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "mul",
        .in = {{"X", {0, 2}, .empty = true}, {"Y", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {0, 2}, .empty = true}},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("mul X=f32[-1,13]/1 Y=f32[13,1]"),
              "Out=f32[-1,1]/1");
    CHECK_STR(fl_infer_text("mul X=f32[-1,-1,5] Y=f32[15,4]"), "Out=f32[-1,4]");
    CHECK_STR(fl_infer_text("mul{x_num_col_dims=2} X=f64[-1,3,4] Y=f64[4,5]"),
              "Out=f64[-1,3,5]");
}

static void tells_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("mul X=f32[2,3] Y=f32[4,5]"), FL_ESHAPE,
              "mul: X has 3 columns, Y has 4 rows");
    CHECK_ERR(fl_infer_try("mul{x_num_col_dims=2} X=f32[2,3] Y=f32[3,5]"),
              FL_ESHAPE, "mul: X [2,3] has no columns after 2 dims");
    CHECK_ERR(fl_infer_try("mul X=i64[2,3] Y=i64[3,5]"), FL_ESHAPE,
              "mul: X is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("mul X=f32[2,3] Y=f64[3,5]"), FL_ESHAPE,
              "mul: Y is f64, expected f32");
    CHECK_ERR(fl_infer_try("mul_grad X=f32[2,3] Y=f32[3,5] Out@GRAD=f32[2,4]"),
              FL_ESHAPE, "mul_grad: Out@GRAD is f32[2,4], expected f32[2,5]");
}

const fl_test fl_tests[] = {
    {"mul multiplies matrices", multiplies_matrices},
    {"mul flattens by the numbers of column dims", flattens_by_col_dims},
    {"mul multiplies no rows", multiplies_no_rows},
    {"mul keeps unknown dims", knows_shapes},
    {"mul tells what does not fit", tells_what_does_not_fit},
    {0},
};
