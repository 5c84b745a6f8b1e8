/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void tells_the_dimensions(void)
{
    fl_check_op(&(fl_op_case){
        .type = "shape",
        .in = {{"Input", {2, 1, 3}}},
        .out = {{"Out", {3}, {2, 1, 3}, .dtype = "i32"}},
    });
    CHECK_STR(fl_infer_text("shape Input=f32[-1,8]"), "Out=i32[2]");
}

static void counts_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "size",
        .in = {{"Input", {2, 3}, {0, 0, 0, 0, 0, 0}}},
        .out = {{"Out", {1}, {6}, .dtype = "i64"}},
    });
    CHECK_STR(fl_infer_text("size Input=f32[-1,8]"), "Out=i64[1]");
}

const fl_test fl_tests[] = {
    {"size counts elements", counts_elements},
    {"shape tells the dimensions", tells_the_dimensions},
    {0},
};
