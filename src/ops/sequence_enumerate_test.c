/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void lists_neighbours(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_enumerate",
        .attr = {{"win_size", FL_ATTR_INT, .i = 2},
                 {"pad_value", FL_ATTR_INT, .i = 9}},
        .in = {{"X", {4, 1}, {1, 2, 3, 4}, .dtype = "i64", .lod = "0,3,4"}},
        .out = {{"Out",
                 {4, 2},
                 {1, 2, 2, 3, 3, 9, 4, 9},
                 .dtype = "i64",
                 .lod = "0,3,4"}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("sequence_enumerate{win_size=3} X=i64[-1,1]/1"),
              "Out=i64[-1,3]/1");
    CHECK_ERR(fl_infer_try("sequence_enumerate{win_size=0} X=i64[-1,1]/1"),
              FL_ESHAPE, "sequence_enumerate: X is [-1,1], win_size 0");
    CHECK_ERR(fl_infer_try("sequence_enumerate{win_size=2} X=f32[-1,1]/1"),
              FL_ESHAPE, "sequence_enumerate: X is f32, expected i64 or i32");
}

const fl_test fl_tests[] = {
    {"sequence_enumerate lists neighbours", lists_neighbours},
    {"sequence_enumerate says what does not fit", says_what_does_not_fit},
    {0},
};
