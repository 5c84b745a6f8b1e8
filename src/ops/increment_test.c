/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void counts_in_place(void)
{
    const char *types[] = {NULL, "i64", "i32"};
    for (int i = 0; i < 3; i++)
        fl_check_op(&(fl_op_case){
            .type = "increment",
            .in = {{"X", {1}, {41}, .dtype = types[i]}},
            .out = {{"Out", {1}, {42}, .dtype = types[i], .same = "X"}},
        });
}

static void takes_steps(void)
{
    fl_check_op(&(fl_op_case){
        .type = "increment",
        .attr = {{"step", FL_ATTR_FLOAT, .f = -2}},
        .in = {{"X", {1}, {1}, .dtype = "i64"}},
        .out = {{"Out", {1}, {-1}, .dtype = "i64"}},
    });
}

static void refuses_more_than_one_element(void)
{
    CHECK_STR(fl_infer_text("increment X=i64[1]"), "Out=i64[1]");
    CHECK_ERR(fl_infer_try("increment X=i64[2]"), FL_ESHAPE,
              "increment: X is [2], expected one element");
    CHECK_ERR(fl_infer_try("increment X=bool[1]"), FL_ESHAPE,
              "increment: X is bool");
}

const fl_test fl_tests[] = {
    {"increment counts in place", counts_in_place},
    {"increment takes steps", takes_steps},
    {"increment refuses more than one element", refuses_more_than_one_element},
    {0},
};
