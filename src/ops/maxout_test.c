/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void takes_the_largest_of_each_group(void)
{
    fl_check_op(&(fl_op_case){
        .type = "maxout",
        .attr = {{"groups", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 4, 1, 2}, {1, 8, 3, 6, 5, 4, 7, 2}}},
        .out = {{"Out", {1, 2, 1, 2}, {3, 8, 7, 4}}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("maxout{groups=2} X=f32[-1,4,8,8]"),
              "Out=f32[-1,2,8,8]");
    CHECK_ERR(fl_infer_try("maxout{groups=3} X=f32[-1,4,8,8]"), FL_ESHAPE,
              "maxout: X has 4 channels, groups is 3");
    CHECK_ERR(fl_infer_try("maxout{groups=2} X=f32[-1,4]"), FL_ESHAPE,
              "maxout: X is [-1,4], expected 4 dims");
}

const fl_test fl_tests[] = {
    {"maxout takes the largest of each group", takes_the_largest_of_each_group},
    {"maxout says what is wrong", says_what_is_wrong},
    {0},
};
