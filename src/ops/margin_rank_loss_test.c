/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void costs_pairs_in_the_wrong_order(void)
{
    fl_check_op(&(fl_op_case){
        .type = "margin_rank_loss",
        .attr = {{"margin", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X1", {4, 1}, {2, 1, 1, 3}},
               {"X2", {4, 1}, {1, 2, 0.75, 1}},
               {"Label", {4, 1}, {1, 1, 1, -1}}},
        .out = {{"Activated", {4, 1}, {0, 1, 1, 1}},
                {"Out", {4, 1}, {0, 1.5, 0.25, 2.5}}},
        .grad = {"X1", "X2"}, /* also compare with central differences */
    });
}

static void keeps_an_unknown_batch_size(void)
{
    CHECK_STR(fl_infer_text("margin_rank_loss X1=f32[-1,1] X2=f32[-1,1] "
                            "Label=f32[-1,1]"),
              "Activated=f32[-1,1] Out=f32[-1,1]");
}

static void says_which_shapes_differ(void)
{
    CHECK_ERR(fl_infer_try("margin_rank_loss X1=f32[4,1] X2=f32[3,1] "
                           "Label=f32[4,1]"),
              FL_ESHAPE, "margin_rank_loss: X1 is f32[4,1], X2 is f32[3,1]");
    CHECK_ERR(fl_infer_try("margin_rank_loss X1=f32[4,1] X2=f32[4,1] "
                           "Label=i64[4,1]"),
              FL_ESHAPE, "margin_rank_loss: X1 is f32[4,1], Label is i64[4,1]");
    CHECK_ERR(fl_infer_try("margin_rank_loss_grad Label=f32[4,1] "
                           "Activated=f32[4,1] Out@GRAD=f32[2,1]"),
              FL_ESHAPE,
              "margin_rank_loss_grad: Label is f32[4,1], Out@GRAD is f32[2,1]");
    CHECK_ERR(
        fl_infer_try("margin_rank_loss_grad Label=f32[4,1] "
                     "Activated=f32[2,1] Out@GRAD=f32[4,1]"),
        FL_ESHAPE,
        "margin_rank_loss_grad: Label is f32[4,1], Activated is f32[2,1]");
}

static void wants_real_numbers(void)
{
    CHECK_ERR(fl_infer_try("margin_rank_loss X1=bool[4,1] X2=bool[4,1] "
                           "Label=bool[4,1]"),
              FL_ESHAPE, "margin_rank_loss: X1 is bool, expected f32 or f64");
    CHECK_ERR(fl_infer_try("margin_rank_loss X1=f32[4,1] X2=rows:f32[4,1] "
                           "Label=f32[4,1]"),
              FL_ESHAPE,
              "margin_rank_loss: X2 is selected_rows, expected a tensor");
}

const fl_test fl_tests[] = {
    {"margin_rank_loss costs pairs in the wrong order",
     costs_pairs_in_the_wrong_order},
    {"margin_rank_loss keeps an unknown batch size",
     keeps_an_unknown_batch_size},
    {"margin_rank_loss says which shapes differ", says_which_shapes_differ},
    {"margin_rank_loss wants real numbers", wants_real_numbers},
    {0},
};
