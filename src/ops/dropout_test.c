/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define HOW(up) (up ? "upscale_in_train" : "downgrade_in_infer")
#define ATTR(p, test, up)                                                      \
    {                                                                          \
        {"dropout_prob", FL_ATTR_FLOAT, .f = p},                               \
            {"is_test", FL_ATTR_BOOL, .b = test},                              \
            {"fix_seed", FL_ATTR_BOOL, .b = true},                             \
            {"seed", FL_ATTR_INT, .i = 1},                                     \
        {                                                                      \
            "dropout_implementation", FL_ATTR_STRING, .s = HOW(up)             \
        }                                                                      \
    }
#define X                                                                      \
    {                                                                          \
        "X", {2, 3}, {1, 2, 3, 4, 5, 6}, .lod = "0,2"                          \
    }

/* Seed 1 draws 0.00002 0.085 0.601 0.892 0.968 0.190. */
static void drops_what_the_original_drops(void)
{
    fl_check_op(&(fl_op_case){
        .type = "dropout",
        .attr = ATTR(0.5f, false, false),
        .in = {X},
        .out = {{"Out", {2, 3}, {0, 0, 3, 4, 5, 0}, .lod = "0,2"},
                {"Mask", {2, 3}, {0, 0, 1, 1, 1, 0}, "u8"}},
        .grad = {"X"},
    });
}

static void scales_up_in_training(void)
{
    fl_check_op(&(fl_op_case){
        .type = "dropout",
        .attr = ATTR(0.2f, false, true),
        .in = {X},
        .out = {{"Out", {2, 3}, {0, 0, 3.75, 5, 6.25, 0}},
                {"Mask", {2, 3}, {0, 0, 1, 1, 1, 0}, "u8"}},
        .grad = {"X"},
    });
}

static void scales_down_in_tests(void)
{
    fl_check_op(&(fl_op_case){
        .type = "dropout",
        .attr = ATTR(0.25f, true, false),
        .in = {X},
        .out = {{"Out", {2, 3}, {0.75, 1.5, 2.25, 3, 3.75, 4.5}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "dropout",
        .attr = ATTR(0.25f, true, true),
        .in = {X},
        .out = {{"Out", {2, 3}, {1, 2, 3, 4, 5, 6}}},
    });
}

static void drops_all_or_nothing(void)
{
    fl_check_op(&(fl_op_case){
        .type = "dropout",
        .attr = ATTR(1, false, true),
        .in = {X},
        .out = {{"Out", {2, 3}, {0}}, {"Mask", {2, 3}, {0}, "u8"}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "dropout",
        .attr = {{"dropout_prob", FL_ATTR_FLOAT, .f = 0}}, /* any seed */
        .in = {X},
        .out = {{"Out", {2, 3}, {1, 2, 3, 4, 5, 6}},
                {"Mask", {2, 3}, {1, 1, 1, 1, 1, 1}, "u8"}},
        .grad = {"X"},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("dropout X=f32[-1,8]/1"),
              "Out=f32[-1,8]/1 Mask=u8[-1,8]");
    CHECK_ERR(fl_infer_try("dropout{dropout_prob=1.5} X=f32[-1,8]"), FL_EINVAL,
              "dropout: dropout_prob is 1.5, expected 0 to 1");
    CHECK_ERR(fl_infer_try("dropout{dropout_implementation=\"x\"} X=f32[-1,8]"),
              FL_EINVAL, "dropout: dropout_implementation is \"x\", expected");
    CHECK_ERR(fl_infer_try("dropout_grad{is_test=true} Mask=u8[2] "
                           "Out@GRAD=f32[2]"),
              FL_EINVAL, "dropout_grad: there is no gradient with is_test");
    CHECK_ERR(fl_infer_try("dropout_grad Mask=u8[2] Out@GRAD=f32[3]"),
              FL_ESHAPE, "dropout_grad: Mask is u8[2], expected u8[3]");
}

const fl_test fl_tests[] = {
    {"dropout drops what the original drops", drops_what_the_original_drops},
    {"dropout scales up in training", scales_up_in_training},
    {"dropout scales down in tests", scales_down_in_tests},
    {"dropout drops all or nothing", drops_all_or_nothing},
    {"dropout knows its shapes", knows_shapes},
    {0},
};
