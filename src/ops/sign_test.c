/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void tells_negative_zero_and_positive(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sign",
        .in = {{"X", {3}, {-2.5, 0.5, 7}}},
        .out = {{"Out", {3}, {-1, 1, 1}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "sign",
        .in = {{"X", {3}, {-2, 0, 7}, .dtype = "i64"}},
        .out = {{"Out", {3}, {-1, 0, 1}, .dtype = "i64", .same = "X"}},
    });
}

static void keeps_the_shape(void)
{
    CHECK_STR(fl_infer_text("sign X=f32[-1,8]/1"), "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try("sign X=bool[2]"), FL_ESHAPE, "sign: X is bool");
}

const fl_test fl_tests[] = {
    {"sign tells negative, zero and positive",
     tells_negative_zero_and_positive},
    {"sign keeps the shape", keeps_the_shape},
    {0},
};
