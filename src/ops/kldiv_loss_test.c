/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void check(const char *reduction, double by)
{
    fl_check_op(&(fl_op_case){
        .type = "kldiv_loss",
        .attr = {{"reduction", FL_ATTR_STRING, .s = reduction}},
        .in = {{"X", {2, 2}, {-1, -2, 0.5, 1}},
               {"Target", {2, 2}, {0.25, 0.5, 0, 1}}},
        .out = {{"Loss", {1}, {(-0.0965736 + 0.6534264 + 0 - 1) / by}}},
        .grad = {"X"},
    });
}

static void adds_up_as_told(void)
{
    check("sum", 1);
    check("mean", 4);
    check("batchmean", 2);
    fl_check_op(&(fl_op_case){
        .type = "kldiv_loss",
        .attr = {{"reduction", FL_ATTR_STRING, .s = "none"}},
        .in = {{"X", {2, 2}, {-1, -2, 0.5, 1}},
               {"Target", {2, 2}, {0.25, 0.5, 0, 1}}},
        .out = {{"Loss", {2, 2}, {-0.0965736, 0.6534264, 0, -1}}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("kldiv_loss X=f32[-1,8] Target=f32[-1,8]"),
              "Loss=f32[1]");
    CHECK_STR(fl_infer_text("kldiv_loss{reduction=\"none\"} X=f32[-1,8] "
                            "Target=f32[-1,8]"),
              "Loss=f32[-1,8]");
    CHECK_ERR(fl_infer_try("kldiv_loss{reduction=\"max\"} X=f32[2] "
                           "Target=f32[2]"),
              FL_EINVAL, "kldiv_loss: reduction is \"max\", expected");
    CHECK_ERR(fl_infer_try("kldiv_loss X=f32[2,8] Target=f32[2,7]"), FL_ESHAPE,
              "kldiv_loss: X is f32[2,8], Target is f32[2,7]");
}

const fl_test fl_tests[] = {
    {"kldiv_loss adds up as told", adds_up_as_told},
    {"kldiv_loss says what does not fit", says_what_does_not_fit},
    {0},
};
