/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void puts_rows_in_their_place(void)
{
    fl_check_op(&(fl_op_case){
        .type = "scatter",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Ids", {2}, {2, 0}, .dtype = "i64"},
               {"Updates", {2, 2}, {7, 8, 9, 10}}},
        .out = {{"Out", {3, 2}, {9, 10, 3, 4, 7, 8}}},
        .grad = {"X", "Updates"},
    });
}

static void adds_up_what_goes_to_one_row(void)
{
    fl_check_op(&(fl_op_case){
        .type = "scatter",
        .attr = {{"overwrite", FL_ATTR_BOOL, .b = false}},
        .in = {{"X", {3, 1}, {1, 2, 3}},
               {"Ids", {3, 1}, {1, 1, 0}, .dtype = "i32"},
               {"Updates", {3, 1}, {5, 6, 7}}},
        .out = {{"Out", {3, 1}, {7, 11, 3}}},
        .grad = {"X", "Updates"},
    });
    fl_check_op(&(fl_op_case){
        .type = "scatter",
        .in = {{"X", {2, 1}, {1, 2}, .dtype = "i64"},
               {"Ids", {1}, {1}, .dtype = "i64"},
               {"Updates", {1, 1}, {5}, .dtype = "i64"}},
        .out = {{"Out", {2, 1}, {1, 5}, .dtype = "i64", .same = "X"}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(
        fl_infer_text("scatter X=f32[-1,8] Ids=i64[-1] Updates=f32[-1,8]"),
        "Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("scatter X=f32[3,8] Ids=i64[2] Updates=f32[2,7]"),
              FL_ESHAPE, "scatter: Updates is f32[2,7], expected f32[2,8]");
    CHECK_ERR(fl_infer_try("scatter X=f32[3,8] Ids=i64[2,2] Updates=f32[2,8]"),
              FL_ESHAPE, "scatter: Ids is [2,2], expected [n] or [n,1]");
    CHECK_ERR(fl_infer_try("scatter_grad Ids=i64[2] Updates=f32[2,7] "
                           "Out@GRAD=f32[3,8]"),
              FL_ESHAPE, "scatter_grad: Updates is f32[2,7]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "scatter",
                  .in = {{"X", {2, 1}, {1, 2}},
                         {"Ids", {1}, {2}, .dtype = "i64"},
                         {"Updates", {1, 1}, {5}}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "scatter: Ids 0 is 2, X has 2 rows");
}

const fl_test fl_tests[] = {
    {"scatter puts rows in their place", puts_rows_in_their_place},
    {"scatter adds up what goes to one row", adds_up_what_goes_to_one_row},
    {"scatter says what does not fit", says_what_does_not_fit},
    {0},
};
