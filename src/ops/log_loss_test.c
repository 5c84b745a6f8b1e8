/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void is_the_loss_of_a_probability(void)
{
    fl_check_op(&(fl_op_case){
        .type = "log_loss",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-4f}},
        .in = {{"Predicted", {3, 1}, {0.2, 0.9, 0.5}, .lod = "0,3"},
               {"Labels", {3, 1}, {1, 0, 0.25}}},
        .out = {{"Loss",
                 {3, 1},
                 {1.60893804, 2.30158559, 0.69294720},
                 .lod = "0,3"}},
        .grad = {"Predicted"},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("log_loss{epsilon=0.1} Predicted=f32[-1,1] "
                            "Labels=f32[-1,1]"),
              "Loss=f32[-1,1]");
    CHECK_ERR(fl_infer_try("log_loss{epsilon=0.1} Predicted=f32[4,1] "
                           "Labels=i64[4,1]"),
              FL_ESHAPE, "log_loss: Labels is i64[4,1], expected f32[4,1]");
    CHECK_ERR(fl_infer_try("log_loss Predicted=f32[4,1] Labels=f32[4,1]"),
              FL_EINVAL, "log_loss: attribute epsilon is missing");
}

const fl_test fl_tests[] = {
    {"log_loss is the loss of a probability", is_the_loss_of_a_probability},
    {"log_loss knows its shapes", knows_shapes},
    {0},
};
