/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void scales_and_moves_channels(void)
{
    fl_check_op(&(fl_op_case){
        .type = "affine_channel",
        .in = {{"X", {2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}},
               {"Scale", {2}, {2, -1}},
               {"Bias", {2}, {0.5, 10}}},
        .out = {{"Out", {2, 2, 1, 2}, {2.5, 4.5, 7, 6, 10.5, 12.5, 3, 2}}},
        .grad = {"X", "Scale", "Bias"},
    });
    fl_check_op(&(fl_op_case){
        .type = "affine_channel",
        .attr = {{"data_layout", FL_ATTR_STRING, .s = "NHWC"}},
        .in = {{"X", {1, 1, 2, 2}, {1, 2, 3, 4}},
               {"Scale", {2}, {2, -1}},
               {"Bias", {2}, {0, 10}}},
        .out = {{"Out", {1, 1, 2, 2}, {2, 8, 6, 6}}},
        .grad = {"X", "Scale", "Bias"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("affine_channel X=f32[-1,4,3,3] Scale=f32[4] "
                            "Bias=f32[4]"),
              "Out=f32[-1,4,3,3]");
    CHECK_ERR(fl_infer_try("affine_channel X=f32[1,4,3,3] Scale=f32[3] "
                           "Bias=f32[4]"),
              FL_ESHAPE, "affine_channel: Scale is f32[3], expected f32[4]");
    CHECK_ERR(fl_infer_try("affine_channel X=f32[4] Scale=f32[4] Bias=f32[4]"),
              FL_ESHAPE, "affine_channel: X is [4], which has no channels");
}

const fl_test fl_tests[] = {
    {"affine_channel scales and moves channels", scales_and_moves_channels},
    {"affine_channel says what does not fit", says_what_does_not_fit},
    {0},
};
