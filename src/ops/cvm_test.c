/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void takes_logarithms_of_counts(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cvm",
        .in = {{"X", {1, 4}, {3, 1, 5, 6}}, {"CVM", {1, 2}, {3, 1}}},
        .out = {{"Y", {1, 4}, {1.3862944, -0.6931472, 5, 6}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "cvm",
        .attr = {{"use_cvm", FL_ATTR_BOOL, .b = false}},
        .in = {{"X", {2, 3}, {3, 1, 5, 0, 0, 6}},
               {"CVM", {2, 2}, {3, 1, 0, 0}}},
        .out = {{"Y", {2, 1}, {5, 6}}},
    });
}

/* No slope of the formula: counts are handed on as they are. */
static void hands_counts_to_the_gradient(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cvm_grad",
        .in = {{"X", {1, 4}, {3, 1, 5, 6}},
               {"CVM", {1, 2}, {3, 1}},
               {"Y@GRAD", {1, 4}, {0.1, 0.2, 0.3, 0.4}}},
        .out = {{"X@GRAD", {1, 4}, {3, 1, 0.3, 0.4}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "cvm_grad",
        .attr = {{"use_cvm", FL_ATTR_BOOL, .b = false}},
        .in = {{"X", {1, 4}, {3, 1, 5, 6}},
               {"CVM", {1, 2}, {3, 1}},
               {"Y@GRAD", {1, 2}, {0.3, 0.4}}},
        .out = {{"X@GRAD", {1, 4}, {3, 1, 0.3, 0.4}}},
    });
    fl_checked("cvm", true);
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("cvm{use_cvm=false} X=f32[-1,8] CVM=f32[-1,2]"),
              "Y=f32[-1,6]");
    CHECK_ERR(fl_infer_try("cvm X=f32[2,1] CVM=f32[2,2]"), FL_ESHAPE,
              "cvm: X is [2,1], expected [N,D], D of 2 or more");
    CHECK_ERR(fl_infer_try("cvm X=f32[2,3] CVM=f32[2,3]"), FL_ESHAPE,
              "cvm: CVM is f32[2,3], expected f32[2,2]");
}

const fl_test fl_tests[] = {
    {"cvm takes logarithms of counts", takes_logarithms_of_counts},
    {"cvm hands counts to the gradient", hands_counts_to_the_gradient},
    {"cvm says what does not fit", says_what_does_not_fit},
    {0},
};
