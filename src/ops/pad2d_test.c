/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void check(const char *mode, int64_t top, int64_t left, int64_t h,
                  int64_t w, const double *want)
{
    fl_op_case c = {
        .type = "pad2d",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(top, 0, left, 1)},
                 {"mode", FL_ATTR_STRING, .s = mode},
                 {"pad_value", FL_ATTR_FLOAT, .f = 9}},
        .in = {{"X", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {1, 1, h, w}}},
        .grad = {"X"},
    };
    for (int64_t i = 0; i < h * w; i++)
        c.out[0].value[i] = want[i];
    fl_check_op(&c);
}

static void frames_in_three_ways(void)
{
    check("constant", 1, 0, 3, 4,
          (double[]){9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9});
    check("edge", 1, 1, 3, 5,
          (double[]){1, 1, 2, 3, 3, 1, 1, 2, 3, 3, 4, 4, 5, 6, 6});
    check("reflect", 1, 2, 3, 6,
          (double[]){6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5});
}

static void knows_channels_last(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pad2d",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(0, 0, 1, 0)},
                 {"mode", FL_ATTR_STRING, .s = "edge"},
                 {"data_format", FL_ATTR_STRING, .s = "NHWC"}},
        .in = {{"X", {1, 1, 2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {1, 1, 3, 2}, {1, 2, 1, 2, 3, 4}}},
        .grad = {"X"},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("pad2d{paddings=[1,2,3,4]} X=f32[-1,3,5,5]"),
              "Out=f32[-1,3,8,12]");
    CHECK_ERR(fl_infer_try("pad2d{paddings=[1,2]} X=f32[1,3,5,5]"), FL_ESHAPE,
              "pad2d: X has 4 dims, paddings 2 numbers, expected 4 and 4");
    CHECK_ERR(fl_infer_try("pad2d{mode=\"wrap\"} X=f32[1,3,5,5]"), FL_EINVAL,
              "pad2d: mode is \"wrap\"");
    CHECK_ERR(fl_infer_try("pad2d{paddings=[5,0,0,0],mode=\"reflect\"} "
                           "X=f32[1,3,5,5]"),
              FL_ESHAPE, "pad2d: 5 of padding, but X has 5 there");
    CHECK_ERR(fl_infer_try("pad2d{paddings=[0,0,0,-1]} X=f32[1,3,5,5]"),
              FL_EINVAL, "pad2d: paddings has -1");
}

const fl_test fl_tests[] = {
    {"pad2d frames in three ways", frames_in_three_ways},
    {"pad2d knows channels last", knows_channels_last},
    {"pad2d says what does not fit", says_what_does_not_fit},
    {0},
};
