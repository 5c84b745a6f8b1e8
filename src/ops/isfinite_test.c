/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

/* What each of the three says of forty numbers, one of which is x. */
static void check(double x, bool finite, bool infinite, bool nan)
{
    static const char *const types[] = {"isfinite", "isinf", "isnan"};
    const bool want[] = {finite, infinite, nan};
    for (int t = 0; t < 3; t++) {
        fl_op_case c = {.type = types[t],
                        .in = {{"X", {40}}},
                        .out = {{"Out", {1}, {want[t]}, .dtype = "bool"}}};
        for (int i = 0; i < 40; i++)
            c.in[0].value[i] = i;
        c.in[0].value[37] = x;
        fl_check_op(&c);
    }
}

static void finds_one_bad_element(void)
{
    check(1, true, false, false);
    check(-1e30, true, false, false);
    check(INFINITY, false, true, false);
    check(-INFINITY, false, true, false);
    check(NAN, false, false, true);
}

static void takes_whole_numbers_rows_and_nothing(void)
{
    fl_check_op(&(fl_op_case){
        .type = "isfinite",
        .in = {{"X", {2}, {1, 2}, .dtype = "i32"}},
        .out = {{"Out", {1}, {1}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "isfinite",
        .in = {{"X", {2, 1}, {1, NAN}, .rows = "3,1", .height = 5}},
        .out = {{"Out", {1}, {0}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "isfinite",
        .in = {{"X", {0, 2}, .empty = true}},
        .out = {{"Out", {1}, {1}, .dtype = "bool"}},
    });
    CHECK_STR(fl_infer_text("isfinite X=f32[-1,8]"), "Out=bool[1]");
}

const fl_test fl_tests[] = {
    {"isfinite finds one bad element", finds_one_bad_element},
    {"isfinite takes whole numbers, rows and nothing",
     takes_whole_numbers_rows_and_nothing},
    {0},
};
