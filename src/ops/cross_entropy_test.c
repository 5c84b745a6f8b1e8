/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define PROBABILITIES                                                          \
    {                                                                          \
        "X", {2, 3},                                                           \
        {                                                                      \
            0.2, 0.5, 0.3, 0.6, 0.1, 0.3                                       \
        }                                                                      \
    }

static void takes_the_label(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cross_entropy",
        .in = {PROBABILITIES, {"Label", {2, 1}, {1, 0}, "i64"}},
        .out = {{"Y", {2, 1}, {0.69314718, 0.51082562}}},
        .grad = {"X"},
    });
}

static void weighs_soft_labels(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cross_entropy",
        .attr = {{"soft_label", FL_ATTR_BOOL, .b = true}},
        .in = {PROBABILITIES, {"Label", {2, 3}, {0.5, 0.5, 0, 0, 1, 0}}},
        .out = {{"Y", {2, 1}, {1.15129255, 2.30258509}}},
        .grad = {"X"},
    });
}

static void keeps_what_its_gradient_needs(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cross_entropy2",
        .in = {PROBABILITIES, {"Label", {2, 1}, {1, 0}, "i64"}},
        .out = {{"Y", {2, 1}, {0.69314718, 0.51082562}},
                {"MatchX", {2, 1}, {0.5, 0.6}},
                {"XShape", {0, 2, 3}, .empty = true}},
        .grad = {"X"},
    });
}

static void passes_over_ignored_labels(void)
{
    const char *types[] = {"cross_entropy", "cross_entropy2"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = types[i],
            .attr = {{"ignore_index", FL_ATTR_INT, .i = -1}},
            .in = {PROBABILITIES, {"Label", {2, 1}, {-1, 2}, "i64"}},
            .out = {{"Y", {2, 1}, {0, 1.20397280}}},
            .want = {"XShape", "MatchX"} /* cross_entropy has neither */,
            .grad = {"X"},
        });
}

static void stays_finite(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cross_entropy2",
        .in = {{"X", {1, 2}, {0, 1}}, {"Label", {1, 1}, {0}, "i64"}},
        .out = {{"Y", {1, 1}, {1e20}}},
        .want = {"XShape", "MatchX"},
    });
}

static void refuses_a_label_outside(void)
{
    fl_op_case c = {
        .type = "cross_entropy2",
        .in = {PROBABILITIES, {"Label", {2, 1}, {1, 3}, "i64"}},
        .want = {"Y", "XShape", "MatchX"},
    };
    CHECK_ERR(fl_check_try(&c), FL_EINVAL,
              "cross_entropy2: Label is 3 in row 1, expected 0 to 2");
    c.in[1].value[0] = -1;
    CHECK_ERR(fl_check_try(&c), FL_EINVAL,
              "cross_entropy2: Label is -1 in row 0, expected 0 to 2");
    fl_op_case g = {
        .type = "cross_entropy_grad2",
        .in = {{"Label", {1, 1}, {9}, "i64"},
               {"MatchX", {1, 1}, {0.5}},
               {"XShape", {0, 1, 3}, .empty = true},
               {"Y@GRAD", {1, 1}, {1}}},
        .want = {"X@GRAD"},
    };
    CHECK_ERR(fl_check_try(&g), FL_EINVAL,
              "cross_entropy_grad2: Label is 9 in row 0, expected 0 to 2");
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("cross_entropy X=f32[-1,10]/1 Label=i64[-1,1]"),
              "Y=f32[-1,1]/1");
    CHECK_STR(fl_infer_text("cross_entropy2 X=f64[-1,10] Label=i64[-1,1]"),
              "Y=f64[-1,1] XShape=f64[0,-1,10] MatchX=f64[-1,1]");
    CHECK_ERR(fl_infer_try("cross_entropy X=f32[4,10] Label=i64[5,1]"),
              FL_ESHAPE, "cross_entropy: Label is i64[5,1], expected i64[4,1]");
    CHECK_ERR(fl_infer_try("cross_entropy X=f32[4,10] Label=f32[4,1]"),
              FL_ESHAPE, "cross_entropy: Label is f32[4,1], expected i64[4,1]");
    CHECK_ERR(fl_infer_try("cross_entropy X=f32[4] Label=i64[1]"), FL_ESHAPE,
              "cross_entropy: X has 1 dims, expected 2 or more");
}

const fl_test fl_tests[] = {
    {"cross_entropy takes the label's logarithm", takes_the_label},
    {"cross_entropy weighs soft labels", weighs_soft_labels},
    {"cross_entropy2 keeps what its gradient needs",
     keeps_what_its_gradient_needs},
    {"cross_entropy passes over ignored labels", passes_over_ignored_labels},
    {"cross_entropy2 stays finite at zero", stays_finite},
    {"cross_entropy2 refuses a label outside the classes",
     refuses_a_label_outside},
    {"cross_entropy knows its shapes", knows_shapes},
    {0},
};
