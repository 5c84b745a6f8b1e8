/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void spreads_evenly(void)
{
    fl_check_op(&(fl_op_case){
        .type = "label_smooth",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X", {2, 2}, {1, 0, 0, 1}}},
        .out = {{"Out", {2, 2}, {0.75, 0.25, 0.25, 0.75}}},
        .grad = {"X"},
    });
}

static void spreads_by_a_prior(void)
{
    fl_check_op(&(fl_op_case){
        .type = "label_smooth",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X", {2, 2}, {1, 0, 0, 1}}, {"PriorDist", {1, 2}, {0.2, 0.8}}},
        .out = {{"Out", {2, 2}, {0.6, 0.4, 0.1, 0.9}}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("label_smooth X=f32[-1,8]"), "Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("label_smooth X=f32[-1,8] PriorDist=f32[1,7]"),
              FL_ESHAPE, "label_smooth: PriorDist is f32[1,7], expected");
    CHECK_ERR(fl_infer_try("label_smooth X=i64[-1,8]"), FL_ESHAPE,
              "label_smooth: X is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("label_smooth_grad Out@GRAD=bool[4,8]"), FL_ESHAPE,
              "label_smooth_grad: Out@GRAD is bool, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"label_smooth spreads evenly", spreads_evenly},
    {"label_smooth spreads by a prior", spreads_by_a_prior},
    {"label_smooth says what is wrong", says_what_is_wrong},
    {0},
};
