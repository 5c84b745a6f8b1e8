/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void raises_real_numbers(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pow",
        .attr = {{"factor", FL_ATTR_FLOAT, .f = 2.5f}},
        .in = {{"X", {4}, {1, 2, 4, 0.25}}},
        .out = {{"Out", {4}, {1, 5.656854249, 32, 0.03125}}},
        .grad = {"X"},
    });
}

static void raises_whole_numbers(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pow",
        .attr = {{"factor", FL_ATTR_FLOAT, .f = 3}},
        .in = {{"X", {4}, {-2, 0, 3, 100}, "i64"}},
        .out = {{"Out", {4}, {-8, 0, 27, 1000000}, "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "pow",
        .attr = {{"factor", FL_ATTR_FLOAT, .f = 2}},
        .in = {{"X", {3}, {-3, 5, 65536}, "i32"}},
        .out = {{"Out", {3}, {9, 25, 0}, "i32"}}, /* 2^32 wraps around */
    });
    fl_check_op(&(fl_op_case){
        .type = "pow",
        .attr = {{"factor", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X", {3}, {9, 10, 0}, "i64"}},
        .out = {{"Out", {3}, {3, 3, 0}, "i64"}},
    });
}

static void whole_numbers_have_no_negative_power(void)
{
    CHECK_ERR(fl_infer_try("pow{factor=-1.0} X=i64[2]"), FL_EINVAL,
              "pow: factor is -1 and X is i64: a whole number has no negative "
              "power");
    CHECK_STR(fl_infer_text("pow{factor=-1.0} X=f32[-1,2]"), "Out=f32[-1,2]");
}

const fl_test fl_tests[] = {
    {"pow raises real numbers", raises_real_numbers},
    {"pow raises whole numbers", raises_whole_numbers},
    {"whole numbers have no negative power",
     whole_numbers_have_no_negative_power},
    {0},
};
