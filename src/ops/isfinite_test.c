#include "ops/check.h"

#include <math.h>

static void check(double x, bool finite)
{
    fl_op_case c = {.type = "isfinite",
                    .in = {{"X", {40}}},
                    .out = {{"Out", {1}, {finite}, .dtype = "bool"}}};
    for (int i = 0; i < 40; i++)
        c.in[0].value[i] = i;
    c.in[0].value[37] = x;
    fl_check_op(&c);
}

static void finds_one_bad_element(void)
{
    check(1, true);
    check(-1e30, true);
    check(INFINITY, false);
    check(-INFINITY, false);
    check(NAN, false);
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
