/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void find_the_first_along_an_axis(void)
{
    fl_op_case c = {
        .type = "arg_max",
        .in = {{"X", {2, 3}, {1, 5, 5, 4, 4, 2}}},
        .out = {{"Out", {2}, {1, 0}, .dtype = "i64"}},
    };
    fl_check_op(&c);
    c.type = "arg_min";
    c.out[0] = (fl_case_arg){"Out", {2}, {0, 2}, .dtype = "i64"};
    fl_check_op(&c);
    c.attr[0] = (fl_attr){"axis", FL_ATTR_LONG, .i = 0};
    c.out[0] = (fl_case_arg){"Out", {3}, {0, 1, 1}, .dtype = "i64"};
    fl_check_op(&c);
    c.in[0].dtype = "i32";
    fl_check_op(&c);
}

static void say_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("arg_max{axis=1} X=f32[-1,8,3]"), "Out=i64[-1,3]");
    CHECK_STR(fl_infer_text("arg_min X=f32[8]"), "Out=i64[1]");
    CHECK_ERR(fl_infer_try("arg_max{axis=2} X=f32[-1,8]"), FL_ESHAPE,
              "arg_max: axis is 2, X has 2 dims");
    CHECK_ERR(fl_infer_try("arg_min X=f32[2,0]"), FL_ESHAPE,
              "arg_min: X [2,0] has nothing along axis 1");
}

const fl_test fl_tests[] = {
    {"arg_max and arg_min find the first along an axis",
     find_the_first_along_an_axis},
    {"arg_max and arg_min say what is wrong", say_what_is_wrong},
    {0},
};
