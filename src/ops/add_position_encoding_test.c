/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void counts_from_the_start_of_each(void)
{
    fl_check_op(&(fl_op_case){
        .type = "add_position_encoding",
        .attr = {{"alpha", FL_ATTR_FLOAT, .f = 2},
                 {"beta", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X", {1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        .out = {{"Out",
                 {1, 2, 4},
                 {2, 4, 6.5, 8.5, 10.4207355, 12.00005, 14.2701512, 16.5}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "add_position_encoding",
        .in = {{"X", {3, 2}, {0, 0, 0, 0, 0, 0}, .lod = "0,1,3"}},
        .out = {{"Out", {3, 2}, {0, 1, 0, 1, 0.0001, 1}, .lod = "0,1,3"}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("add_position_encoding X=f32[-1,5,8]"),
              "Out=f32[-1,5,8]");
    CHECK_ERR(fl_infer_try("add_position_encoding X=f32[2,5,7]"), FL_ESHAPE,
              "add_position_encoding: X is [2,5,7], expected [N,T,D]");
}

const fl_test fl_tests[] = {
    {"add_position_encoding counts from the start of each",
     counts_from_the_start_of_each},
    {"add_position_encoding says what does not fit", says_what_does_not_fit},
    {0},
};
