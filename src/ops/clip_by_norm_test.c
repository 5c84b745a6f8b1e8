/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void shortens_what_is_too_long(void)
{
    fl_check_op(&(fl_op_case){
        .type = "clip_by_norm",
        .attr = {{"max_norm", FL_ATTR_FLOAT, .f = 1}},
        .in = {{"X", {2}, {3, 4}}},
        .out = {{"Out", {2}, {0.6, 0.8}}},
    });
}

static void leaves_what_is_short_enough(void)
{
    fl_check_op(&(fl_op_case){
        .type = "clip_by_norm",
        .attr = {{"max_norm", FL_ATTR_FLOAT, .f = 5.5}},
        .in = {{"X", {2}, {3, 4}}},
        .out = {{"Out", {2}, {3, 4}, .same = "X"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "clip_by_norm",
        .attr = {{"max_norm", FL_ATTR_FLOAT, .f = 1}},
        .in = {{"X", {2}, {0, 0}}},
        .out = {{"Out", {2}, {0, 0}}},
    });
}

static void adds_equal_rows_before(void)
{
    const char *in_place[] = {NULL, "X"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = "clip_by_norm",
            .attr = {{"max_norm", FL_ATTR_FLOAT, .f = 1}},
            .in = {{"X", {3, 1}, {1, 4, 2}, .rows = "7,2,7", .height = 9}},
            .out = {{"Out",
                     {2, 1},
                     {0.8, 0.6},
                     .rows = "2,7",
                     .height = 9,
                     .same = in_place[i]}},
        });
}

static void refuses_a_norm_of_nothing(void)
{
    CHECK_STR(fl_infer_text("clip_by_norm{max_norm=1.} X=f32[-1,8]"),
              "Out=f32[-1,8]");
    CHECK_ERR(fl_infer_try("clip_by_norm{max_norm=0.} X=f32[2]"), FL_EINVAL,
              "clip_by_norm: max_norm is 0, expected more than 0");
    CHECK_ERR(fl_infer_try("clip_by_norm{max_norm=1.} X=i64[2]"), FL_ESHAPE,
              "clip_by_norm: X is i64, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"clip_by_norm shortens what is too long", shortens_what_is_too_long},
    {"clip_by_norm leaves what is short enough", leaves_what_is_short_enough},
    {"clip_by_norm adds equal rows up before", adds_equal_rows_before},
    {"clip_by_norm refuses a norm of nothing", refuses_a_norm_of_nothing},
    {0},
};
