/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void norms_rows(void)
{
    double r = sqrt(2 / 3. + 0.25), s = sqrt(8 / 3. + 0.25);
    fl_check_op(&(fl_op_case){
        .type = "layer_norm",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 0.25f}},
        .in = {{"X", {2, 3}, {1, 2, 3, 7, 5, 3}},
               {"Scale", {3}, {2, 3, 4}},
               {"Bias", {3}, {10, 20, 30}}},
        .out = {{"Y",
                 {2, 3},
                 {10 - 2 / r, 20, 30 + 4 / r, 10 + 4 / s, 20, 30 - 8 / s}},
                {"Mean", {2}, {2, 5}},
                {"Variance", {2}, {2 / 3., 8 / 3.}}},
        .grad = {"X", "Scale", "Bias"},
    });
}

static void needs_neither_scale_nor_bias(void)
{
    double r = sqrt(1.25 + 0.25);
    fl_check_op(&(fl_op_case){
        .type = "layer_norm",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 0.25f},
                 {"begin_norm_axis", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 2, 2, 2}, {1, 2, 3, 4, 4, 3, 2, 1}}},
        .out = {{"Y",
                 {1, 2, 2, 2},
                 {-1.5 / r, -0.5 / r, 0.5 / r, 1.5 / r, 1.5 / r, 0.5 / r,
                  -0.5 / r, -1.5 / r}},
                {"Mean", {2}, {2.5, 2.5}}},
        .grad = {"X"},
    });
}

/* Whole vectors and a rest. */
static void norms_long_rows(void)
{
    fl_op_case c = {
        .type = "layer_norm",
        .in = {{"X", {2, 37}}, {"Scale", {37}}},
        .out = {{"Y", {2, 37}}},
        .grad = {"X", "Scale"},
    };
    for (int i = 0; i < 74; i++)
        c.in[0].value[i] = (i * 29 % 31 - 11) / 8.0;
    for (int i = 0; i < 37; i++)
        c.in[1].value[i] = i % 5 + 1;
    for (int row = 0; row < 2; row++) {
        double mean = 0, variance = 0, *x = c.in[0].value + row * 37;
        for (int i = 0; i < 37; i++)
            mean += x[i] / 37;
        for (int i = 0; i < 37; i++)
            variance += pow(x[i] - mean, 2) / 37;
        for (int i = 0; i < 37; i++)
            c.out[0].value[row * 37 + i] =
                (x[i] - mean) / sqrt(variance + 1e-5) * c.in[1].value[i];
    }
    fl_check_op(&c);
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("layer_norm{begin_norm_axis=2} X=f32[-1,3,8]"),
              "Y=f32[-1,3,8] Mean=f32[-1] Variance=f32[-1]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("layer_norm X=f32[-1,3,8] Scale=f32[8]"), FL_ESHAPE,
              "layer_norm: Scale is f32[8], expected f32[24]");
    CHECK_ERR(fl_infer_try("layer_norm{begin_norm_axis=3} X=f32[-1,3,8]"),
              FL_ESHAPE, "layer_norm: begin_norm_axis is 3, X is [-1,3,8]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "layer_norm_grad",
                  .in = {{"X", {2, 2}},
                         {"Mean", {3}},
                         {"Variance", {2}},
                         {"Y@GRAD", {2, 2}}},
              }),
              FL_ESHAPE, "layer_norm_grad: Mean is f32[3], expected f32[2]");
}

const fl_test fl_tests[] = {
    {"layer_norm norms rows", norms_rows},
    {"layer_norm needs neither scale nor bias", needs_neither_scale_nor_bias},
    {"layer_norm norms long rows", norms_long_rows},
    {"layer_norm knows shapes before it runs", knows_shapes_before_it_runs},
    {"layer_norm says what is wrong", says_what_is_wrong},
    {0},
};
