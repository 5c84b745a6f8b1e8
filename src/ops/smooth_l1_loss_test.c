/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void is_square_inside_and_straight_outside(void)
{
    fl_check_op(&(fl_op_case){
        .type = "smooth_l1_loss",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}, {"Y", {2, 2}, {0.5, 4, 3.2, 1}}},
        .out = {{"Diff", {2, 2}, {0.5, -2, -0.2, 3}},
                {"Out", {2, 1}, {1.625, 2.52}}},
        .grad = {"X", "Y"},
    });
}

/* sigma 2: the bend is at 1/4. */
static void weighs_inside_and_outside(void)
{
    fl_check_op(&(fl_op_case){
        .type = "smooth_l1_loss",
        .attr = {{"sigma", FL_ATTR_FLOAT, .f = 2}},
        .in = {{"X", {1, 2, 2}, {1, 2, 3, 4}},
               {"Y", {1, 2, 2}, {0.8, 4, 3.2, 1}},
               {"InsideWeight", {1, 2, 2}, {1, 0.5, 0.5, 0}},
               {"OutsideWeight", {1, 2, 2}, {2, 1, 3, 5}}},
        .out = {{"Diff", {1, 2, 2}, {0.2, -1, -0.1, 0}},
                {"Out", {1, 1}, {1.095}}},
        .grad = {"X", "Y"},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("smooth_l1_loss X=f32[-1,4] Y=f32[-1,4]"),
              "Diff=f32[-1,4] Out=f32[-1,1]");
    CHECK_ERR(fl_infer_try("smooth_l1_loss X=f32[3,4] Y=f32[3,5]"), FL_ESHAPE,
              "smooth_l1_loss: Y is f32[3,5], expected f32[3,4]");
    CHECK_ERR(fl_infer_try("smooth_l1_loss X=f32[3] Y=f32[3]"), FL_ESHAPE,
              "smooth_l1_loss: X has 1 dims, expected 2 or more");
}

const fl_test fl_tests[] = {
    {"smooth_l1_loss is square inside and straight outside",
     is_square_inside_and_straight_outside},
    {"smooth_l1_loss weighs inside and outside", weighs_inside_and_outside},
    {"smooth_l1_loss knows its shapes", knows_shapes},
    {0},
};
