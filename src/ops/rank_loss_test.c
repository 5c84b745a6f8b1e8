/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void compares_left_and_right(void)
{
    fl_check_op(&(fl_op_case){
        .type = "rank_loss",
        .in = {{"Label", {3, 1}, {1, 0, 0.5}},
               {"Left", {3, 1}, {2, 1, 0}},
               {"Right", {3, 1}, {0.5, 2, 0}}},
        .out = {{"Out", {3, 1}, {0.2014133, 0.3132617, 0.6931472}}},
        .grad = {"Left", "Right"},
    });
    fl_check_op(&(fl_op_case){
        .type = "rank_loss", /* where e^d would be infinite */
        .in = {{"Label", {1, 1}, {0}},
               {"Left", {1, 1}, {1000}},
               {"Right", {1, 1}, {0}}},
        .out = {{"Out", {1, 1}, {1000}}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("rank_loss Label=f32[-1,1] Left=f32[-1,1] "
                            "Right=f32[-1,1]"),
              "Out=f32[-1,1]");
    CHECK_ERR(fl_infer_try("rank_loss Label=f32[2,1] Left=f32[2,1] "
                           "Right=f32[3,1]"),
              FL_ESHAPE, "rank_loss: Left is f32[2,1], Right is f32[3,1]");
}

const fl_test fl_tests[] = {
    {"rank_loss compares left and right", compares_left_and_right},
    {"rank_loss says what does not fit", says_what_does_not_fit},
    {0},
};
