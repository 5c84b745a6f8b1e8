/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

/* Two images, two channels, three elements each. */
static fl_op_case a_case(void)
{
    return (fl_op_case){
        .type = "batch_norm",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 0.25f},
                 {"momentum", FL_ATTR_FLOAT, .f = 0.75f}},
        .in = {{"X", {2, 2, 1, 3}, {1, 2, 3, 7, 5, 3, 4, 6, 8, 1, 2, 3}},
               {"Scale", {2}, {2, 3}},
               {"Bias", {2}, {10, 20}},
               {"Mean", {2}, {8, 4}},
               {"Variance", {2}, {1, 2}}},
        .out = {{"Y", {2, 2, 1, 3}},
                {"MeanOut", {2}, .same = "Mean"},
                {"VarianceOut", {2}, .same = "Variance"}},
        .grad = {"X", "Scale", "Bias"},
    };
}

/* What Y must be, given mean and variance of the channels. */
static void expect(fl_op_case *c, int n, int inner, const double mean[2],
                   const double variance[2])
{
    for (int i = 0; i < n; i++) {
        int k = i / inner % 2;
        c->out[0].value[i] = (c->in[0].value[i] - mean[k]) /
                                 sqrt(variance[k] + 0.25) * c->in[1].value[k] +
                             c->in[2].value[k];
    }
}

static void uses_the_batch_and_moves_the_running_values(void)
{
    fl_op_case c = a_case();
    const double mean[] = {4, 3.5}, variance[] = {34 / 6., 23.5 / 6};
    expect(&c, 12, 3, mean, variance);
    for (int k = 0; k < 2; k++) {
        c.out[1].value[k] = c.in[3].value[k] * 0.75 + mean[k] * 0.25;
        c.out[2].value[k] = c.in[4].value[k] * 0.75 + variance[k] * 0.25;
    }
    c.out[3] = (fl_case_arg){"SavedMean", {2}, {4, 3.5}};
    c.out[4] = (fl_case_arg){
        "SavedVariance",
        {2},
        {1 / sqrt(variance[0] + 0.25), 1 / sqrt(variance[1] + 0.25)}};
    fl_check_op(&c);
}

static void takes_channels_last(void)
{
    fl_op_case c = a_case();
    const double mean[] = {3.5, 4}, variance[] = {63.5 / 6, 20 / 6.};
    c.attr[2] = (fl_attr){"data_layout", FL_ATTR_STRING, .s = "NHWC"};
    c.in[0] =
        (fl_case_arg){"X", {2, 1, 3, 2}, {1, 2, 3, 7, 5, 3, 1, 6, 10, 3, 1, 3}};
    c.out[0] = (fl_case_arg){"Y", {2, 1, 3, 2}};
    expect(&c, 12, 1, mean, variance);
    c.out[1] = (fl_case_arg){"MeanOut", {2}, {6.875, 4}, .same = "Mean"};
    c.out[2].slot = NULL;
    c.want[0] = "VarianceOut";
    fl_check_op(&c);
}

static void takes_matrices(void)
{
    fl_op_case c = a_case();
    c.in[0] = (fl_case_arg){"X", {3, 2}, {1, 2, 3, 7, 5, 3}};
    c.out[0] = (fl_case_arg){"Y", {3, 2}};
    c.out[1].slot = NULL;
    c.want[0] = "MeanOut", c.want[1] = "VarianceOut";
    expect(&c, 6, 1, (double[]){3, 4}, (double[]){8 / 3., 14 / 3.});
    fl_check_op(&c);
}

static void sums_long_lines(void)
{
    fl_op_case c = a_case();
    double mean[2] = {0}, variance[2] = {0};
    c.in[0] = (fl_case_arg){"X", {2, 2, 1, 37}};
    c.out[0] = (fl_case_arg){"Y", {2, 2, 1, 37}};
    c.out[1].slot = NULL;
    c.want[0] = "MeanOut", c.want[1] = "VarianceOut";
    for (int i = 0; i < 148; i++) {
        c.in[0].value[i] = (i * 29 % 31 - 11) / 8.0;
        mean[i / 37 % 2] += c.in[0].value[i] / 74;
    }
    for (int i = 0; i < 148; i++)
        variance[i / 37 % 2] +=
            pow(c.in[0].value[i] - mean[i / 37 % 2], 2) / 74;
    expect(&c, 148, 37, mean, variance);
    fl_check_op(&c);
}

static void keeps_the_running_values_when_told(void)
{
    static const char *const how[] = {"is_test", "use_global_stats"};
    for (int i = 0; i < 2; i++) {
        fl_op_case c = a_case();
        c.attr[2] = (fl_attr){how[i], FL_ATTR_BOOL, .b = true};
        expect(&c, 12, 3, (double[]){8, 4}, (double[]){1, 2});
        c.out[1].value[0] = 8, c.out[1].value[1] = 4;
        c.out[2].value[0] = 1, c.out[2].value[1] = 2;
        fl_check_op(&c);
    }
}

static void copies_single_elements(void)
{
    fl_op_case c = a_case();
    c.in[0] = (fl_case_arg){"X", {1, 2}, {5, 6}};
    c.out[0] = (fl_case_arg){"Y", {1, 2}, {5, 6}};
    c.out[1] = (fl_case_arg){"MeanOut", {2}, {8, 4}};
    c.out[2] = (fl_case_arg){"VarianceOut", {2}, {1, 2}};
    fl_check_op(&c);
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("batch_norm X=f32[-1,3,8,8] Scale=f32[3] "
                            "Bias=f32[3] Mean=f32[3] Variance=f32[3]"),
              "Y=f32[-1,3,8,8] MeanOut=f32[3] VarianceOut=f32[3] "
              "SavedMean=f32[3] SavedVariance=f32[3]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("batch_norm X=f32[-1,3,8,8] Scale=f32[4] "
                           "Bias=f32[3] Mean=f32[3] Variance=f32[3]"),
              FL_ESHAPE, "batch_norm: Scale is f32[4], expected f32[3]");
    CHECK_ERR(fl_infer_try("batch_norm X=f32[3] Scale=f32[3] "
                           "Bias=f32[3] Mean=f32[3] Variance=f32[3]"),
              FL_ESHAPE, "batch_norm: X is [3], expected 2 to 5 dims");
    CHECK_ERR(fl_infer_try("batch_norm{data_layout=\"CNHW\"} X=f32[3,3] "
                           "Scale=f32[3] Bias=f32[3] Mean=f32[3] "
                           "Variance=f32[3]"),
              FL_EINVAL, "batch_norm: data_layout is \"CNHW\", expected");
}

/* A plain sum of so many floats is wrong in its third digit. */
static void many_rows_have_their_mean(void)
{
    enum {
        ROWS = 2000016
    };
    static const char *const names[] = {"Scale", "Bias", "Mean", "Variance"};
    static const char *const outs[] = {"Y", "MeanOut", "VarianceOut",
                                       "SavedMean", "SavedVariance"};
    const fl_shape shape = {2, {ROWS, 1}};
    fl_vars v;
    fl_vars_init(&v);
    fl_desc *d = fl_desc_new(v.arena, "batch_norm");
    fl_value *x = fl_vars_get(&v, "X");
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, FL_F32, &shape));
    for (int i = 0; i < ROWS; i++) /* 3.1, 4.1, ... */
        ((float *)x->tensor.data)[i] = 3.1f + (float)(i % 2);
    fl_desc_set_in1(d, "X", "X");
    for (int i = 0; i < 4; i++) {
        fl_vars_set(&v, names[i], 1, (float[]){1});
        fl_desc_set_in1(d, names[i], names[i]);
    }
    for (int i = 0; i < 5; i++)
        fl_desc_set_out1(d, outs[i], outs[i]);
    CHECK_OK(fl_vars_run(&v, d));
    CHECK_NEAR(*(float *)fl_vars_get(&v, "SavedMean")->tensor.data, 3.6, 1e-5);
    CHECK_NEAR(*(float *)fl_vars_get(&v, "SavedVariance")->tensor.data, 2,
               1e-3);
    fl_vars_fini(&v);
}

const fl_test fl_tests[] = {
    {"batch_norm uses the batch and moves the running values",
     uses_the_batch_and_moves_the_running_values},
    {"batch_norm takes channels last", takes_channels_last},
    {"batch_norm takes matrices", takes_matrices},
    {"batch_norm sums long lines", sums_long_lines},
    {"batch_norm keeps the running values when told",
     keeps_the_running_values_when_told},
    {"batch_norm copies single elements", copies_single_elements},
    {"batch_norm knows shapes before it runs", knows_shapes_before_it_runs},
    {"batch_norm says what is wrong", says_what_is_wrong},
    {"batch_norm of many rows has their mean", many_rows_have_their_mean},
    {0},
};
