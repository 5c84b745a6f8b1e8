/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void sums_to_one_in_each_sequence(void)
{
    double e = exp(1), s = 1 + e + e * e;
    fl_check_op(&(fl_op_case){
        .type = "sequence_softmax",
        .in = {{"X", {5, 1}, {1, 2, 3, 4, 5}, .lod = "0,3,3,5"}},
        .out = {{"Out",
                 {5, 1},
                 {1 / s, e / s, e * e / s, 1 / (1 + e), e / (1 + e)},
                 .lod = "0,3,3,5"}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("sequence_softmax X=f32[-1,1]/1"),
              "Out=f32[-1,1]/1");
    CHECK_ERR(fl_infer_try("sequence_softmax X=f32[-1,2]/1"), FL_ESHAPE,
              "sequence_softmax: X is [-1,2], expected one column");
    CHECK_ERR(fl_infer_try("sequence_softmax X=i64[-1,1]/1"), FL_ESHAPE,
              "sequence_softmax: X is i64, expected f32 or f64");
}

static void a_gradient_has_one_column_too(void)
{
    CHECK_ERR(fl_infer_try("sequence_softmax_grad Out=f32[4,0]/1 "
                           "Out@GRAD=f32[4,0]/1"),
              FL_ESHAPE,
              "sequence_softmax_grad: Out is [4,0], expected one column");
}

const fl_test fl_tests[] = {
    {"sequence_softmax sums to one in each sequence",
     sums_to_one_in_each_sequence},
    {"sequence_softmax says what is wrong", says_what_is_wrong},
    {"a gradient of sequence_softmax has one column, too",
     a_gradient_has_one_column_too},
    {0},
};
