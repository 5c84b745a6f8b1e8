/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void tells_nothing_from_something(void)
{
    fl_check_op(&(fl_op_case){
        .type = "is_empty",
        .in = {{"X", {0, 2}, .empty = true}},
        .out = {{"Out", {1}, {1}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "is_empty",
        .in = {{"X", {1, 2}}},
        .out = {{"Out", {1}, {0}, .dtype = "bool"}},
    });
    CHECK_STR(fl_infer_text("is_empty X=f32[-1,8]"), "Out=bool[1]");
}

const fl_test fl_tests[] = {
    {"is_empty tells nothing from something", tells_nothing_from_something},
    {0},
};
