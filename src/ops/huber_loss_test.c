/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void is_square_inside_and_straight_outside(void)
{
    fl_check_op(&(fl_op_case){
        .type = "huber_loss",
        .attr = {{"delta", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X", {4, 1}, {1, 1, 1, 1}}, {"Y", {4, 1}, {1.25, 3, 0.9, -1}}},
        .out = {{"Residual", {4, 1}, {0.25, 2, -0.1, -2}},
                {"Out", {4, 1}, {0.03125, 0.875, 0.005, 0.875}}},
        .grad = {"X", "Y"},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("huber_loss{delta=1.0} X=f32[-1,1]/1 Y=f32[-1,1]"),
              "Residual=f32[-1,1] Out=f32[-1,1]/1");
    CHECK_ERR(fl_infer_try("huber_loss{delta=1.0} X=f32[4,1] Y=f32[5,1]"),
              FL_ESHAPE, "huber_loss: Y is f32[5,1], expected f32[4,1]");
}

const fl_test fl_tests[] = {
    {"huber_loss is square inside and straight outside",
     is_square_inside_and_straight_outside},
    {"huber_loss knows its shapes", knows_shapes},
    {0},
};
