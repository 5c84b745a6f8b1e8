/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void keeps_each_sequences_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_reshape",
        .attr = {{"new_dim", FL_ATTR_INT, .i = 4}},
        .in = {{"X", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, .lod = "0,2,4"}},
        .out = {{"Out", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("sequence_reshape{new_dim=4} X=f32[-1,8]/1"),
              "Out=f32[-1,4]/1");
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "sequence_reshape",
            .attr = {{"new_dim", FL_ATTR_INT, .i = 4}},
            .in = {{"X", {4, 2}, .lod = "0,1,4"}},
        }),
        FL_ESHAPE,
        "sequence_reshape: sequence 0 has 2 elements, expected a multiple "
        "of new_dim, which is 4");
    CHECK_ERR(fl_infer_try("sequence_reshape{new_dim=3} X=f32[2,8]/1"),
              FL_ESHAPE,
              "sequence_reshape: X has 16 elements, new_dim is 3, expected a "
              "divisor");
}

const fl_test fl_tests[] = {
    {"sequence_reshape keeps each sequence's elements",
     keeps_each_sequences_elements},
    {"sequence_reshape says what is wrong", says_what_is_wrong},
    {0},
};
