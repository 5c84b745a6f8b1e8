/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void averages_all_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "mean",
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 9}}},
        .out = {{"Out", {1}, {4}}},
        .grad = {"X"},
    });
}

static void gives_one_number_whatever_the_batch(void)
{
    CHECK_STR(fl_infer_text("mean X=f32[-1,8]"), "Out=f32[1]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("mean"), FL_EINVAL, "mean: input X is missing");
    CHECK_ERR(fl_infer_try("mean X=i64[2]"), FL_ESHAPE,
              "mean: X is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("mean_grad X=f32[2] Out@GRAD=f64[1]"), FL_ESHAPE,
              "mean_grad: Out@GRAD is f64[1], expected f32[1]");
}

static void nothing_has_no_mean(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "mean",
                  .in = {{"X", {0, 1}, .empty = true}},
                  .want = {"Out"},
              }),
              FL_ESHAPE, "mean: X [0,1] has no elements (an empty batch?)");
    CHECK_STR(fl_infer_text("mean X=f32[-1,1]"), "Out=f32[1]");
}

const fl_test fl_tests[] = {
    {"mean averages all elements", averages_all_elements},
    {"mean gives one number whatever the batch",
     gives_one_number_whatever_the_batch},
    {"mean says what is wrong with its inputs", says_what_is_wrong},
    {"nothing has no mean", nothing_has_no_mean},
    {0},
};
