/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void divides_by_the_length(void)
{
    fl_check_op(&(fl_op_case){
        .type = "norm",
        .attr = {{"axis", FL_ATTR_INT, .i = -1}},
        .in = {{"X", {2, 2}, {3, 4, -5, 12}}},
        .out = {{"Norm", {2, 1}, {5, 13}},
                {"Out", {2, 2}, {0.6, 0.8, -5 / 13., 12 / 13.}}},
        .grad = {"X"},
    });
}

static void takes_any_axis(void)
{
    double r = sqrt(17), s = sqrt(29);
    fl_check_op(&(fl_op_case){
        .type = "norm",
        .attr = {{"axis", FL_ATTR_INT, .i = 1},
                 {"epsilon", FL_ATTR_FLOAT, .f = 9}},
        .in = {{"X", {1, 2, 2}, {2, 2, -2, 4}}},
        .out = {{"Norm", {1, 1, 2}, {r, s}},
                {"Out", {1, 2, 2}, {2 / r, 2 / s, -2 / r, 4 / s}}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("norm{axis=1} X=f32[-1,8]"),
              "Norm=f32[-1,1] Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("norm{axis=2} X=f32[-1,8]"), FL_ESHAPE,
              "norm: axis is 2, X has 2 dims");
    CHECK_ERR(fl_infer_try("norm{axis=1} X=i64[-1,8]"), FL_ESHAPE,
              "norm: X is i64, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"norm divides by the length", divides_by_the_length},
    {"norm takes any axis", takes_any_axis},
    {"norm says what is wrong", says_what_is_wrong},
    {0},
};
