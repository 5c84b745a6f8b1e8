/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void joins_sequence_by_sequence(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_concat",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}, .lod = "0,1,3"},
               {"X", {2, 2}, {7, 8, 9, 10}, .lod = "0,2,2"}},
        .out =
            {{"Out", {5, 2}, {1, 2, 7, 8, 9, 10, 3, 4, 5, 6}, .lod = "0,3,5"}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("sequence_concat X=f32[-1,8]/1 X=f32[-1,8]/1"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try("sequence_concat X=f32[-1,8]/1 X=f32[-1,9]/1"),
              FL_ESHAPE, "sequence_concat: X 0 is f32[-1,8], X 1 is f32[-1,9]");
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "sequence_concat",
            .in = {{"X", {2, 1}, .lod = "0,2"}, {"X", {2, 1}, .lod = "0,1,2"}},
        }),
        FL_ESHAPE, "sequence_concat: X 0 has 1 sequences, X 1 has 2");
}

const fl_test fl_tests[] = {
    {"sequence_concat joins sequence by sequence", joins_sequence_by_sequence},
    {"sequence_concat says what is wrong", says_what_is_wrong},
    {0},
};
