/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void looks_ahead_within_a_sequence(void)
{
    fl_check_op(&(fl_op_case){
        .type = "row_conv",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}, .lod = "0,2,3"},
               {"Filter", {2, 2}, {1, 10, 100, 1000}}},
        .out = {{"Out", {3, 2}, {301, 4020, 3, 40, 5, 60}, .lod = "0,2,3"}},
        .grad = {"X", "Filter"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("row_conv X=f32[-1,8]/1 Filter=f32[3,8]"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try("row_conv X=f32[-1,8]/1 Filter=f32[3,7]"), FL_ESHAPE,
              "row_conv: X is f32[-1,8], Filter f32[3,7]");
}

const fl_test fl_tests[] = {
    {"row_conv looks ahead within a sequence", looks_ahead_within_a_sequence},
    {"row_conv says what does not fit", says_what_does_not_fit},
    {0},
};
