/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void lists_what_is_true(void)
{
    fl_check_op(&(fl_op_case){
        .type = "where",
        .in = {{"Condition", {2, 3}, {0, 1, 0, 1, 0, 1}, .dtype = "bool"}},
        .out = {{"Out", {3, 2}, {0, 1, 1, 0, 1, 2}, .dtype = "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "where",
        .in = {{"Condition", {2}, {0, 0}, .dtype = "bool"}},
        .out = {{"Out", {0, 1}, .dtype = "i64", .empty = true}},
    });
}

static void knows_its_shape(void)
{
    CHECK_STR(fl_infer_text("where Condition=bool[-1,8]"), "Out=i64[-1,2]");
    CHECK_ERR(fl_infer_try("where Condition=f32[2]"), FL_ESHAPE,
              "where: Condition is f32, expected bool");
}

const fl_test fl_tests[] = {
    {"where lists what is true", lists_what_is_true},
    {"where knows its shape", knows_its_shape},
    {0},
};
