/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void multiplies_from_both_sides(void)
{
    fl_check_op(&(fl_op_case){
        .type = "bilinear_tensor_product",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}},
               {"Y", {2, 1}, {5, -1}},
               {"Weight", {2, 2, 1}, {1, 2, 3, 4}},
               {"Bias", {1, 2}, {0.5, 0}}},
        .out = {{"Out", {2, 2}, {25.5, 55, -10.5, -25}}},
        .grad = {"X", "Y", "Weight", "Bias"},
    });
    fl_check_op(&(fl_op_case){
        .type = "bilinear_tensor_product",
        .in = {{"X", {1, 1}, {2}},
               {"Y", {1, 2}, {3, 4}},
               {"Weight", {1, 1, 2}, {1, 10}}},
        .out = {{"Out", {1, 1}, {86}}},
        .grad = {"X", "Y", "Weight"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("bilinear_tensor_product X=f32[-1,3] Y=f32[-1,4] "
                            "Weight=f32[5,3,4]"),
              "Out=f32[-1,5]");
    CHECK_ERR(fl_infer_try("bilinear_tensor_product X=f32[2,3] Y=f32[2,4] "
                           "Weight=f32[5,3,3]"),
              FL_ESHAPE,
              "bilinear_tensor_product: Y is f32[2,4], expected "
              "f32[2,3]");
    CHECK_ERR(fl_infer_try("bilinear_tensor_product X=f32[2,3] Y=f32[2,4] "
                           "Weight=f32[5,3]"),
              FL_ESHAPE, "bilinear_tensor_product: Weight is [5,3]");
}

const fl_test fl_tests[] = {
    {"bilinear_tensor_product multiplies from both sides",
     multiplies_from_both_sides},
    {"bilinear_tensor_product says what does not fit", says_what_does_not_fit},
    {0},
};
