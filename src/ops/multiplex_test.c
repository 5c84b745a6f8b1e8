/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void picks_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "multiplex",
        .in = {{"Ids", {3, 1}, {1, 0, 1}, .dtype = "i32"},
               {"X", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"X", {3, 2}, {7, 8, 9, 10, 11, 12}}},
        .out = {{"Out", {3, 2}, {7, 8, 3, 4, 11, 12}}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("multiplex Ids=i32[-1,1] X=f32[-1,8] X=f32[-1,8]"),
              "Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("multiplex Ids=i32[2,1] X=f32[2,3] X=f32[2,4]"),
              FL_ESHAPE, "multiplex: X 0 is f32[2,3], but X 1 is f32[2,4]");
    CHECK_ERR(fl_infer_try("multiplex Ids=i32[3,1] X=f32[2,3] X=f32[2,3]"),
              FL_ESHAPE,
              "multiplex: X is [2,3], Ids [3,1], expected [N,..], [N,1]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "multiplex",
                  .in = {{"Ids", {1, 1}, {2}, .dtype = "i32"},
                         {"X", {1, 1}, {1}},
                         {"X", {1, 1}, {2}}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "multiplex: Ids 0 is 2, but X has 2 inputs");
}

const fl_test fl_tests[] = {
    {"multiplex picks rows", picks_rows},
    {"multiplex says what does not fit", says_what_does_not_fit},
    {0},
};
