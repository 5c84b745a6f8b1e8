/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define TYPE "sigmoid_cross_entropy_with_logits"

static void is_the_loss_of_a_sigmoid(void)
{
    fl_check_op(&(fl_op_case){
        .type = TYPE,
        .in = {{"X", {2, 2}, {0.5, -1, 2, -3}},
               {"Label", {2, 2}, {1, 0, 0.25, 1}}},
        .out = {{"Out",
                 {2, 2},
                 {0.47407698, 0.31326169, 1.62692801, 3.04858735}}},
        .grad = {"X"},
    });
}

static void passes_over_and_normalizes(void)
{
    fl_check_op(&(fl_op_case){
        .type = TYPE,
        .attr = {{"ignore_index", FL_ATTR_INT, .i = -1},
                 {"normalize", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {2, 2}, {0.5, -1, 2, -3}},
               {"Label", {2, 2}, {1, -1, -1, 1}}},
        .out = {{"Out", {2, 2}, {0.23703849, 0, 0, 1.52429368}}},
        .grad = {"X"},
    });
}

static void stays_finite_far_out(void)
{
    fl_check_op(&(fl_op_case){
        .type = TYPE,
        .in = {{"X", {1, 2}, {1000, -1000}}, {"Label", {1, 2}, {0, 1}}},
        .out = {{"Out", {1, 2}, {1000, 1000}}},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text(TYPE " X=f32[-1,8]/1 Label=f32[-1,8]"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try(TYPE " X=f32[4,8] Label=f32[4,1]"), FL_ESHAPE,
              TYPE ": Label is f32[4,1], expected f32[4,8]");
}

const fl_test fl_tests[] = {
    {TYPE " is the loss of a sigmoid", is_the_loss_of_a_sigmoid},
    {TYPE " passes over ignored labels and normalizes",
     passes_over_and_normalizes},
    {TYPE " stays finite far out", stays_finite_far_out},
    {TYPE " knows its shapes", knows_shapes},
    {0},
};
