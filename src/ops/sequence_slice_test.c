/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void cuts_each_sequence(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_slice",
        .in = {{"X", {5, 1}, {1, 2, 3, 4, 5}, .lod = "0,3,5"},
               {"Offset", {2, 1}, {1, 0}, .dtype = "i64"},
               {"Length", {2, 1}, {2, 1}, .dtype = "i64"}},
        .out = {{"Out", {3, 1}, {2, 3, 4}, .lod = "0,2,3"}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("sequence_slice X=f32[-1,8]/1 Offset=i64[-1,1] "
                            "Length=i64[-1,1]"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try("sequence_slice X=f32[-1,8]/1 Offset=i64[-1] "
                           "Length=i64[-1,1]"),
              FL_ESHAPE,
              "sequence_slice: Offset is i64[-1], expected i64[-1,1]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_slice",
                  .in = {{"X", {2, 1}, {1, 2}, .lod = "0,2"},
                         {"Offset", {1, 1}, {1}, .dtype = "i64"},
                         {"Length", {1, 1}, {2}, .dtype = "i64"}},
                  .want = {"Out"},
              }),
              FL_EINVAL,
              "sequence_slice: 2 rows from 1 on, but sequence 0 has 2");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_slice_grad",
                  .in = {{"X", {2, 1}, {1, 2}, .lod = "0,2"},
                         {"Offset", {1, 1}, {1}, .dtype = "i64"},
                         {"Length", {1, 1}, {1}, .dtype = "i64"},
                         {"Out@GRAD", {2, 1}, {1, 1}}},
                  .want = {"X@GRAD"},
              }),
              FL_ESHAPE, "Out@GRAD has 2 rows, Length adds up to 1");
}

const fl_test fl_tests[] = {
    {"sequence_slice cuts each sequence", cuts_each_sequence},
    {"sequence_slice says what does not fit", says_what_does_not_fit},
    {0},
};
