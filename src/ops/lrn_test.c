/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void divides_by_neighbouring_channels(void)
{
    fl_op_case c = {
        .type = "lrn",
        .attr = {{"n", FL_ATTR_INT, .i = 3},
                 {"k", FL_ATTR_FLOAT, .f = 1},
                 {"alpha", FL_ATTR_FLOAT, .f = 0.25f},
                 {"beta", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X",
                {2, 4, 1, 2},
                {1, 2, -3, 4, 5, -6, 7, 8, 8, 7, 6, -5, 4, 3, -2, 1}}},
        .out = {{"Out", {2, 4, 1, 2}}, {"MidOut", {2, 4, 1, 2}}},
        .grad = {"X"},
    };
    for (int i = 0; i < 16; i++) {
        double sum = 0;
        for (int d = -1; d <= 1; d++)
            if (i % 8 / 2 + d >= 0 && i % 8 / 2 + d < 4)
                sum += pow(c.in[0].value[i + 2 * d], 2);
        c.out[1].value[i] = 1 + 0.25 * sum;
        c.out[0].value[i] = c.in[0].value[i] / sqrt(c.out[1].value[i]);
    }
    fl_check_op(&c);
}

static void looks_no_further_than_the_last_channel(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lrn",
        .attr = {{"n", FL_ATTR_INT, .i = INT32_MAX},
                 {"k", FL_ATTR_FLOAT, .f = 1},
                 {"alpha", FL_ATTR_FLOAT, .f = 0.5f},
                 {"beta", FL_ATTR_FLOAT, .f = 1}},
        .in = {{"X", {1, 2, 1, 1}, {2, 4}}},
        .out = {{"Out", {1, 2, 1, 1}, {2 / 11., 4 / 11.}},
                {"MidOut", {1, 2, 1, 1}, {11, 11}}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("lrn X=f32[-1,3,8,8]"),
              "Out=f32[-1,3,8,8] MidOut=f32[-1,3,8,8]");
    CHECK_ERR(fl_infer_try("lrn{n=4} X=f32[-1,3,8,8]"), FL_EINVAL,
              "lrn: n is 4, expected odd and positive");
    CHECK_ERR(fl_infer_try("lrn X=f32[-1,3]"), FL_ESHAPE,
              "lrn: X is [-1,3], expected 4 dims");
}

const fl_test fl_tests[] = {
    {"lrn looks no further than the last channel",
     looks_no_further_than_the_last_channel},
    {"lrn divides by neighbouring channels", divides_by_neighbouring_channels},
    {"lrn says what is wrong", says_what_is_wrong},
    {0},
};
