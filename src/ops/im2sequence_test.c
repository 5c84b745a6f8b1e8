/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void makes_rows_of_windows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "im2sequence",
        .attr = {{"kernels", FL_ATTR_INTS, FL_CASE_INTS(2, 2)},
                 {"strides", FL_ATTR_INTS, FL_CASE_INTS(1, 2)}},
        .in = {{"X", {2, 1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}},
        .out = {{"Out", {2, 4}, {1, 2, 4, 5, 7, 8, 10, 11}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "im2sequence",
        .attr = {{"kernels", FL_ATTR_INTS, FL_CASE_INTS(1, 2)},
                 {"paddings", FL_ATTR_INTS, FL_CASE_INTS(0, 1, 0, 0)}},
        .in = {{"X", {1, 2, 1, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {2, 4}, {0, 1, 0, 3, 1, 2, 3, 4}, .lod = "0,2"}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("im2sequence{kernels=[2,2]} X=f32[-1,3,4,4]"),
              "Out=f32[-1,12]/1");
    CHECK_ERR(fl_infer_try("im2sequence{kernels=[5,2]} X=f32[1,3,4,4]"),
              FL_ESHAPE, "im2sequence: X [1,3,4,4] is smaller than the window");
    CHECK_ERR(fl_infer_try("im2sequence{kernels=[2]} X=f32[1,3,4,4]"),
              FL_EINVAL, "im2sequence: kernels must be 2 numbers of 1 or more");
    CHECK_ERR(fl_infer_try("im2sequence{kernels=[2,2]} X=f32[1,3,4]"),
              FL_ESHAPE, "im2sequence: X is [1,3,4], expected [N,C,H,W]");
}

static void refuses_more_rows_than_can_be(void)
{
    CHECK_STR(fl_infer_text("im2sequence{kernels=[1,1],paddings=[2147483647,"
                            "2147483647,2147483647,2147483647]} "
                            "X=f32[1,1,2,2]"),
              "Out=f32[9223372036854775807,1]/1");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "im2sequence",
                  .attr = {{"kernels", FL_ATTR_INTS, FL_CASE_INTS(1, 1)},
                           {"paddings", FL_ATTR_INTS,
                            FL_CASE_INTS(INT32_MAX, INT32_MAX, INT32_MAX,
                                         INT32_MAX)}},
                  .in = {{"X", {1, 1, 2, 2}, {1, 2, 3, 4}}},
                  .want = {"Out"},
              }),
              FL_ENOMEM, "is more than memory can hold");
}

const fl_test fl_tests[] = {
    {"im2sequence makes rows of windows", makes_rows_of_windows},
    {"im2sequence says what does not fit", says_what_does_not_fit},
    {"im2sequence refuses more rows than can be",
     refuses_more_rows_than_can_be},
    {0},
};
