/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void costs_logits_on_the_wrong_side(void)
{
    fl_check_op(&(fl_op_case){
        .type = "hinge_loss",
        .in = {{"Logits", {6, 1}, {2, 0.5, -1, -3, 0.25, 4}, .lod = "0,2,6"},
               {"Labels", {6, 1}, {1, 1, 1, 0, 0, 0}}},
        .out = {{"Loss", {6, 1}, {0, 0.5, 2, 0, 1.25, 5}, .lod = "0,2,6"}},
        .grad = {"Logits"},
    });
}

static void keeps_an_unknown_batch_size(void)
{
    CHECK_STR(fl_infer_text("hinge_loss Logits=f32[-1,1] Labels=f32[-1,1]"),
              "Loss=f32[-1,1]");
}

static void says_which_shapes_differ(void)
{
    CHECK_ERR(fl_infer_try("hinge_loss Logits=f32[4,1] Labels=f32[3,1]"),
              FL_ESHAPE, "hinge_loss: Logits is f32[4,1], Labels is f32[3,1]");
    CHECK_ERR(fl_infer_try("hinge_loss Logits=f32[4,1] Labels=i64[4,1]"),
              FL_ESHAPE, "hinge_loss: Logits is f32[4,1], Labels is i64[4,1]");
    CHECK_ERR(fl_infer_try("hinge_loss_grad Logits=f32[4,1] Labels=f32[4,1] "
                           "Loss@GRAD=f32[3,1]"),
              FL_ESHAPE,
              "hinge_loss_grad: Loss@GRAD is f32[3,1], expected f32[4,1]");
}

static void wants_one_logit_a_row(void)
{
    CHECK_ERR(fl_infer_try("hinge_loss Logits=f32[4,2] Labels=f32[4,2]"),
              FL_ESHAPE, "hinge_loss: Logits is f32[4,2], expected [N,1]");
    CHECK_ERR(fl_infer_try("hinge_loss Logits=f32[4] Labels=f32[4]"), FL_ESHAPE,
              "hinge_loss: Logits is f32[4], expected [N,1]");
}

static void wants_real_numbers(void)
{
    CHECK_ERR(fl_infer_try("hinge_loss Logits=i64[4,1] Labels=i64[4,1]"),
              FL_ESHAPE, "hinge_loss: Logits is i64, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"hinge_loss costs logits on the wrong side",
     costs_logits_on_the_wrong_side},
    {"hinge_loss keeps an unknown batch size", keeps_an_unknown_batch_size},
    {"hinge_loss says which shapes differ", says_which_shapes_differ},
    {"hinge_loss wants one logit a row", wants_one_logit_a_row},
    {"hinge_loss wants real numbers", wants_real_numbers},
    {0},
};
