/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void takes_rows_and_adds_up_repeats(void)
{
    fl_check_op(&(fl_op_case){
        .type = "gather",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Index", {4}, {2, 0, 2, 1}, .dtype = "i32"}},
        .out = {{"Out", {4, 2}, {5, 6, 1, 2, 5, 6, 3, 4}}},
        .grad = {"X"},
    });
}

static void takes_a_column_of_wide_indices(void)
{
    fl_check_op(&(fl_op_case){
        .type = "gather",
        .in = {{"X", {3}, {7, 8, 9}, .dtype = "u8"},
               {"Index", {2, 1}, {1, 0}, .dtype = "i64"}},
        .out = {{"Out", {2}, {8, 7}, .dtype = "u8"}},
    });
}

static void keeps_the_unknown_count(void)
{
    CHECK_STR(fl_infer_text("gather X=f32[-1,8] Index=i64[-1]"),
              "Out=f32[-1,8]");
}

static void refuses_a_row_that_is_not_there(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "gather",
                  .in = {{"X", {2, 1}, {1, 2}},
                         {"Index", {2}, {0, 2}, .dtype = "i64"}},
              }),
              FL_EINVAL, "gather: Index 1 is 2, X has 2 rows");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "gather_grad",
                  .in = {{"X", {2, 1}, {1, 2}},
                         {"Index", {2}, {0, -1}, .dtype = "i64"},
                         {"Out@GRAD", {2, 1}, {1, 1}}},
              }),
              FL_EINVAL, "gather: Index 1 is -1, X has 2 rows");
    CHECK_ERR(fl_infer_try("gather X=f32[2,3] Index=f32[2]"), FL_ESHAPE,
              "gather: Index is f32, expected i64 or i32");
    CHECK_ERR(fl_infer_try("gather X=f32[2,3] Index=i64[2,2]"), FL_ESHAPE,
              "gather: Index is [2,2], expected [n] or [n,1]");
}

static void a_gradient_is_of_real_numbers(void)
{
    CHECK_ERR(fl_infer_try("gather_grad X=u8[4,3] Index=i64[2] "
                           "Out@GRAD=u8[2,3]"),
              FL_ESHAPE, "gather_grad: Out@GRAD is u8, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"gather takes rows and adds up repeats", takes_rows_and_adds_up_repeats},
    {"gather takes a column of wide indices", takes_a_column_of_wide_indices},
    {"gather keeps the unknown count", keeps_the_unknown_count},
    {"gather refuses a row that is not there", refuses_a_row_that_is_not_there},
    {"a gradient is of real numbers", a_gradient_is_of_real_numbers},
    {0},
};
