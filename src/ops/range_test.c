/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void counts_up_and_down(void)
{
    fl_check_op(&(fl_op_case){
        .type = "range",
        .in = {{"Start", {1}, {1}}, {"End", {1}, {2.2}}, {"Step", {1}, {0.5}}},
        .out = {{"Out", {3}, {1, 1.5, 2}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "range",
        .in = {{"Start", {1}, {5}, .dtype = "i64"},
               {"End", {1}, {1}, .dtype = "i64"},
               {"Step", {1}, {-2}, .dtype = "i64"}},
        .out = {{"Out", {2}, {5, 3}, .dtype = "i64"}},
    });
}

static void refuses_to_count_for_ever(void)
{
    CHECK_STR(fl_infer_text("range Start=i64[1] End=i64[1] Step=i64[1]"),
              "Out=i64[-1]");
    CHECK_ERR(fl_infer_try("range Start=f32[1] End=i64[1] Step=f32[1]"),
              FL_ESHAPE, "range: End is i64[1], expected f32[1]");
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "range",
            .in = {{"Start", {1}, {1}}, {"End", {1}, {2}}, {"Step", {1}, {0}}},
            .want = {"Out"},
        }),
        FL_EINVAL,
        "range: Start is 1, End is 2, Step is 0, expected steps that lead "
        "from Start to End");
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "range",
            .in = {{"Start", {1}, {1}}, {"End", {1}, {0}}, {"Step", {1}, {1}}},
            .want = {"Out"},
        }),
        FL_EINVAL,
        "range: Start is 1, End is 0, Step is 1, expected steps that lead "
        "from Start to End");
}

static void divides_a_stretch(void)
{
    fl_check_op(&(fl_op_case){
        .type = "linspace",
        .in = {{"Start", {1}, {0}},
               {"Stop", {1}, {10}},
               {"Num", {1}, {5}, .dtype = "i32"}},
        .out = {{"Out", {5}, {0, 2.5, 5, 7.5, 10}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "linspace",
        .in = {{"Start", {1}, {3}},
               {"Stop", {1}, {10}},
               {"Num", {1}, {1}, .dtype = "i32"}},
        .out = {{"Out", {1}, {3}}},
    });
    CHECK_STR(fl_infer_text("linspace Start=f32[1] Stop=f32[1] Num=i32[1]"),
              "Out=f32[-1]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "linspace",
                  .in = {{"Start", {1}, {1}},
                         {"Stop", {1}, {2}},
                         {"Num", {1}, {0}, .dtype = "i32"}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "linspace: Num is 0, expected 1 or more");
}

const fl_test fl_tests[] = {
    {"range counts up and down", counts_up_and_down},
    {"range refuses to count for ever", refuses_to_count_for_ever},
    {"linspace divides a stretch", divides_a_stretch},
    {0},
};
