/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void is_softmax_less_the_label(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_softmax_ce_grad",
        .attr = {{"ignore_index", FL_ATTR_INT, .i = -1}},
        .in = {{"Softmax",
                {3, 3},
                {0.2, 0.5, 0.3, 0.6, 0.1, 0.3, 0.1, 0.1, 0.8},
                .lod = "0,3"},
               {"Label", {3, 1}, {1, 0, -1}, "i64"},
               {"Y@GRAD", {3, 1}, {1, 2, 3}}},
        .out = {{"X@GRAD",
                 {3, 3},
                 {0.2, -0.5, 0.3, -0.8, 0.2, 0.6, 0, 0, 0},
                 .lod = "0,3"}},
    });
}

static void refuses_a_label_outside(void)
{
    fl_op_case c = {
        .type = "fused_softmax_ce_grad",
        .in = {{"Softmax", {1, 2}, {0.2, 0.8}},
               {"Label", {1, 1}, {2}, "i64"},
               {"Y@GRAD", {1, 1}, {1}}},
        .want = {"X@GRAD"},
    };
    CHECK_ERR(fl_check_try(&c), FL_EINVAL,
              "fused_softmax_ce_grad: Label is 2 in row 0, expected 0 to 1");
    CHECK_ERR(fl_infer_try("fused_softmax_ce_grad Softmax=f32[2,3] "
                           "Label=i64[2,1] Y@GRAD=f32[3,1]"),
              FL_ESHAPE, "Y@GRAD is f32[3,1], expected f32[2,1]");
}

const fl_test fl_tests[] = {
    {"fused_softmax_ce_grad is softmax less the label",
     is_softmax_less_the_label},
    {"fused_softmax_ce_grad refuses a label outside", refuses_a_label_outside},
    {0},
};
