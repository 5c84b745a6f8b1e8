/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void check(const char *mode, int64_t n, const double *alpha,
                  const double *want)
{
    fl_op_case c = {
        .type = "prelu",
        .attr = {{"mode", FL_ATTR_STRING, .s = mode}},
        .in = {{"X", {2, 2, 2}, {1, -2, -3, 4, -5, -6, -7, -8}},
               {"Alpha", {n}}},
        .out = {{"Out", {2, 2, 2}}},
        .grad = {"X", "Alpha"},
    };
    for (int64_t i = 0; i < n; i++)
        c.in[1].value[i] = alpha[i];
    for (int i = 0; i < 8; i++)
        c.out[0].value[i] = want[i];
    fl_check_op(&c);
}

static void scales_negatives_in_three_ways(void)
{
    check("all", 1, (double[]){0.5},
          (double[]){1, -1, -1.5, 4, -2.5, -3, -3.5, -4});
    check("channel", 2, (double[]){0.5, 2},
          (double[]){1, -1, -6, 4, -2.5, -3, -14, -16});
    check("element", 4, (double[]){0.5, 2, 3, 4},
          (double[]){1, -4, -9, 4, -2.5, -12, -21, -32});
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("prelu{mode=\"some\"} X=f32[-1,4] Alpha=f32[1]"),
              FL_EINVAL,
              "prelu: mode is \"some\", expected all, channel or element");
    CHECK_ERR(fl_infer_try("prelu{mode=\"channel\"} X=f32[-1,4] Alpha=f32[3]"),
              FL_ESHAPE, "prelu: Alpha has 3 elements, expected 4");
    CHECK_STR(fl_infer_text("prelu{mode=\"element\"} X=f32[-1,4] "
                            "Alpha=f32[1,4]"),
              "Out=f32[-1,4]");
}

const fl_test fl_tests[] = {
    {"prelu scales negatives in three ways", scales_negatives_in_three_ways},
    {"prelu says what is wrong", says_what_is_wrong},
    {0},
};
