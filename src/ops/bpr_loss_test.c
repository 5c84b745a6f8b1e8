/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void ranks_the_label_above_the_others(void)
{
    fl_check_op(&(fl_op_case){
        .type = "bpr_loss",
        .in = {{"X", {2, 3}, {1, 2, 0.5, 0, 0, 0}},
               {"Label", {2, 1}, {0, 2}, .dtype = "i64"}},
        .out = {{"Y", {2, 1}, {0.8936693, 0.6931472}}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("bpr_loss X=f32[-1,8] Label=i64[-1,1]"),
              "Y=f32[-1,1]");
    CHECK_ERR(fl_infer_try("bpr_loss X=f32[2,1] Label=i64[2,1]"), FL_ESHAPE,
              "bpr_loss: X is [2,1], expected [.., classes], two or more");
    CHECK_ERR(fl_infer_try("bpr_loss X=f32[2,3] Label=f32[2,1]"), FL_ESHAPE,
              "bpr_loss: Label is f32[2,1], expected i64[2,1]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "bpr_loss",
                  .in = {{"X", {1, 2}, {1, 2}},
                         {"Label", {1, 1}, {2}, .dtype = "i64"}},
                  .want = {"Y"},
              }),
              FL_EINVAL, "bpr_loss: Label is 2 in row 0, expected 0 to 1");
}

const fl_test fl_tests[] = {
    {"bpr_loss ranks the label above the others",
     ranks_the_label_above_the_others},
    {"bpr_loss says what does not fit", says_what_does_not_fit},
    {0},
};
