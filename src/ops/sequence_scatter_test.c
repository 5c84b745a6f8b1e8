/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void adds_to_columns(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_scatter",
        .in = {{"X", {2, 3}, {1, 1, 1, 1, 1, 1}},
               {"Ids", {3, 1}, {0, 0, 2}, .dtype = "i64", .lod = "0,2,3"},
               {"Updates", {3, 1}, {0.5, 0.25, 3}, .lod = "0,2,3"}},
        .out = {{"Out", {2, 3}, {1.75, 1, 1, 1, 1, 4}}},
        .grad = {"X", "Updates"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("sequence_scatter X=f32[-1,8] Ids=i64[-1,1]/1 "
                            "Updates=f32[-1,1]/1"),
              "Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("sequence_scatter X=f32[2,8] Ids=i64[4,2]/1 "
                           "Updates=f32[4,2]/1"),
              FL_ESHAPE, "sequence_scatter: X has 2 dims, Ids is [4,2]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_scatter",
                  .in = {{"X", {2, 1}, {1, 1}},
                         {"Ids", {1, 1}, {0}, .dtype = "i64", .lod = "0,1"},
                         {"Updates", {1, 1}, {1}, .lod = "0,1"}},
                  .want = {"Out"},
              }),
              FL_ESHAPE, "sequence_scatter: X has 2 rows, Ids 1 sequences");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_scatter",
                  .in = {{"X", {1, 1}, {1}},
                         {"Ids", {1, 1}, {1}, .dtype = "i64", .lod = "0,1"},
                         {"Updates", {1, 1}, {1}, .lod = "0,1"}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "sequence_scatter: Ids 0 is 1, a row of X has 1");
}

const fl_test fl_tests[] = {
    {"sequence_scatter adds to columns", adds_to_columns},
    {"sequence_scatter says what does not fit", says_what_does_not_fit},
    {0},
};
