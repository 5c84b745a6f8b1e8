/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void turns_each_sequence(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_reverse",
        .in = {{"X", {4, 1}, {1, 2, 3, 4}, .lod = "0,3,3,4"}},
        .out = {{"Y", {4, 1}, {3, 2, 1, 4}, .lod = "0,3,3,4"}},
        .grad = {"X"},
    });
}

static void needs_sequences(void)
{
    CHECK_STR(fl_infer_text("sequence_reverse X=f32[-1,8]/1"), "Y=f32[-1,8]/1");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_reverse",
                  .in = {{"X", {2, 1}, {1, 2}}},
                  .want = {"Y"},
              }),
              FL_ESHAPE, "sequence_reverse: X has no sequences (LoD)");
}

const fl_test fl_tests[] = {
    {"sequence_reverse turns each sequence", turns_each_sequence},
    {"sequence_reverse needs sequences", needs_sequences},
    {0},
};
