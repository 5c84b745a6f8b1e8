/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define ATTR(tx, ty, scale)                                                    \
    {                                                                          \
        {"transpose_X", FL_ATTR_BOOL, .b = tx},                                \
            {"transpose_Y", FL_ATTR_BOOL, .b = ty},                            \
        {                                                                      \
            "alpha", FL_ATTR_FLOAT, .f = scale                                 \
        }                                                                      \
    }

static void multiplies_matrices(void)
{
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}},
               {"Y", {3, 2}, {1, -1, 2, 0, 0.5, 3}}},
        .out = {{"Out", {2, 2}, {6.5, 8, 17, 14}}},
        .grad = {"X", "Y"},
    });
}

static void transposes_and_scales(void)
{
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .attr = ATTR(true, false, 2),
        .in = {{"X", {3, 2}, {1, 4, 2, 5, 3, 6}},
               {"Y", {3, 2}, {1, -1, 2, 0, 0.5, 3}}},
        .out = {{"Out", {2, 2}, {13, 16, 34, 28}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .attr = ATTR(false, true, 1),
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}},
               {"Y", {2, 3}, {1, 2, 0.5, -1, 0, 3}}},
        .out = {{"Out", {2, 2}, {6.5, 8, 17, 14}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .attr = ATTR(true, true, -1),
        .in = {{"X", {3, 2}, {1, 4, 2, 5, 3, 6}},
               {"Y", {2, 3}, {1, 2, 0.5, -1, 0, 3}}},
        .out = {{"Out", {2, 2}, {-6.5, -8, -17, -14}}},
        .grad = {"X", "Y"},
    });
}

static void treats_vectors_as_row_and_column(void)
{
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {3}, {1, 2, 3}}, {"Y", {3}, {4, 5, 6}}},
        .out = {{"Out", {1}, {32}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {2}, {1, 2}}, {"Y", {2, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {3}, {9, 12, 15}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {2, 1, 2}, {1, 2, 3, 4}}, {"Y", {2}, {5, 6}}},
        .out = {{"Out", {2, 1}, {17, 39}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul", /* a column times a row */
        .attr = ATTR(true, true, 1),
        .in = {{"X", {2}, {1, 2}}, {"Y", {2}, {5, 6}}},
        .out = {{"Out", {2, 2}, {5, 6, 10, 12}}},
        .grad = {"X", "Y"},
    });
}

static void multiplies_batches(void)
{
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {2, 1, 2}, {1, 2, 3, 4}},
               {"Y", {2, 2, 2}, {1, 0, 0, 1, 1, 2, 3, 4}}},
        .out = {{"Out", {2, 1, 2}, {1, 2, 15, 22}}},
        .grad = {"X", "Y"},
    });
}

static void one_matrix_meets_a_batch(void)
{
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {2, 1, 2}, {1, 2, 3, 4}}, {"Y", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {2, 1, 2}, {7, 10, 15, 22}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .attr = ATTR(true, false, 1),
        .in = {{"X", {2, 2, 1}, {1, 2, 3, 4}}, {"Y", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {2, 1, 2}, {7, 10, 15, 22}}},
        .grad = {"X", "Y"},
    });
    fl_check_op(&(fl_op_case){
        .type = "matmul",
        .in = {{"X", {1, 2}, {1, 2}},
               {"Y", {2, 2, 2}, {1, 0, 0, 1, 1, 2, 3, 4}}},
        .out = {{"Out", {2, 1, 2}, {1, 2, 7, 10}}},
        .grad = {"X", "Y"},
    });
}

static void an_empty_batch_has_zero_gradient(void)
{
    fl_check_op(&(fl_op_case){
        .type = "matmul_grad",
        .attr = ATTR(true, false, 1),
        .in = {{"X", {0, 2, 1}, .empty = true},
               {"Y", {2, 2}, {1, 2, 3, 4}},
               {"Out@GRAD", {0, 1, 2}, .empty = true}},
        .out = {{"X@GRAD", {0, 2, 1}, .empty = true},
                {"Y@GRAD", {2, 2}, {0, 0, 0, 0}}},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("matmul X=f32[-1,8,4,5] Y=f32[-1,8,5,3]"),
              "Out=f32[-1,8,4,3]");
    CHECK_STR(fl_infer_text("matmul{transpose_Y=true} X=f32[-1,4] Y=f32[7,4]"),
              "Out=f32[-1,7]");
}

static void tells_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("matmul X=f32[2,3] Y=f32[4,5]"), FL_ESHAPE,
              "matmul: op(X) has 3 columns, op(Y) 4 rows");
    CHECK_ERR(fl_infer_try("matmul X=f32[2,1,3] Y=f32[3,3,5]"), FL_ESHAPE,
              "matmul: X has 2 matrices, Y has 3");
    CHECK_ERR(fl_infer_try("matmul X=i32[2,3] Y=i32[3,5]"), FL_ESHAPE,
              "matmul: X is i32, expected f32 or f64");
    CHECK_ERR(fl_infer_try("matmul_grad X=f32[2,3] Y=f32[3,5] Out@GRAD=f32[5]"),
              FL_ESHAPE, "matmul_grad: Out@GRAD is f32[5], expected f32[2,5]");
}

const fl_test fl_tests[] = {
    {"matmul multiplies matrices", multiplies_matrices},
    {"matmul transposes and scales", transposes_and_scales},
    {"matmul treats vectors as row and column",
     treats_vectors_as_row_and_column},
    {"matmul multiplies batches", multiplies_batches},
    {"matmul lets one matrix meet a batch", one_matrix_meets_a_batch},
    {"matmul's gradient of an empty batch is zero",
     an_empty_batch_has_zero_gradient},
    {"matmul keeps unknown dims", knows_shapes},
    {"matmul tells what does not fit", tells_what_does_not_fit},
    {0},
};
