/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define LOGITS                                                                 \
    {                                                                          \
        "Logits", {2, 3},                                                      \
        {                                                                      \
            1, 2, 3, -1, 0.5, 0.25                                             \
        }                                                                      \
    }

static void takes_the_label(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softmax_with_cross_entropy",
        .in = {LOGITS, {"Label", {2, 1}, {2, 0}, "i64"}},
        .out = {{"Softmax",
                 {2, 3},
                 {0.090030573, 0.244728471, 0.665240956, 0.111457471,
                  0.499517730, 0.389024799}},
                {"Loss", {2, 1}, {0.40760596, 2.19411219}}},
        .grad = {"Logits"},
    });
}

static void weighs_soft_labels(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softmax_with_cross_entropy",
        .attr = {{"soft_label", FL_ATTR_BOOL, .b = true}},
        .in = {LOGITS, {"Label", {2, 3}, {0, 0.5, 0.5, 0.25, 0, 0}}},
        .out = {{"Loss", {2, 1}, {0.90760596, 0.54852805}}},
        .want = {"Softmax"},
        .grad = {"Logits"},
    });
}

static void goes_along_any_axis(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softmax_with_cross_entropy",
        .attr = {{"axis", FL_ATTR_INT, .i = 1},
                 {"ignore_index", FL_ATTR_INT, .i = 7}},
        .in = {{"Logits", {1, 2, 3}, {1, 2, 3, 4, 5.5, -1}},
               {"Label", {1, 1, 3}, {0, 1, 7}, "i64"}},
        .out = {{"Loss", {1, 1, 3}, {3.04858735, 0.02975042, 0}}},
        .want = {"Softmax"},
        .grad = {"Logits"},
    });
}

static void refuses_a_label_outside(void)
{
    fl_op_case c = {
        .type = "softmax_with_cross_entropy",
        .in = {LOGITS, {"Label", {2, 1}, {2, 3}, "i64"}},
        .want = {"Softmax", "Loss"},
    };
    CHECK_ERR(fl_check_try(&c), FL_EINVAL,
              "softmax_with_cross_entropy: Label is 3 in row 1, "
              "expected 0 to 2");
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("softmax_with_cross_entropy Logits=f32[-1,5] "
                            "Label=i64[-1,1]"),
              "Softmax=f32[-1,5] Loss=f32[-1,1]");
    CHECK_ERR(fl_infer_try("softmax_with_cross_entropy Logits=f32[4,5] "
                           "Label=i64[4,2]"),
              FL_ESHAPE, "Label is i64[4,2], expected i64[4,1]");
    CHECK_ERR(fl_infer_try("softmax_with_cross_entropy_grad Label=i64[4,1] "
                           "Softmax=f32[4,5] Loss@GRAD=f32[4,5]"),
              FL_ESHAPE, "Loss@GRAD is f32[4,5], expected f32[4,1]");
}

const fl_test fl_tests[] = {
    {"softmax_with_cross_entropy takes the label", takes_the_label},
    {"softmax_with_cross_entropy weighs soft labels", weighs_soft_labels},
    {"softmax_with_cross_entropy goes along any axis", goes_along_any_axis},
    {"softmax_with_cross_entropy refuses a label outside",
     refuses_a_label_outside},
    {"softmax_with_cross_entropy knows its shapes", knows_shapes},
    {0},
};
