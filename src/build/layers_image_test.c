/* SPDX-License-Identifier: Apache-2.0 */
#include "build/layer.h"
#include "build/test_net.h"
#include "check/check.h"

#include <math.h>

static fl_net *begin(void)
{
    return fl_net_make(fl_check_registry());
}

/* [-1, 6, 12, 12] */
static fl_var *image(fl_net *n)
{
    return test_data(n, "x", FL_F32, 3, (int64_t[]){6, 12, 12});
}

/* --- conv2d, pool2d --- */

static void conv2d_adds_a_bias_for_each_filter(void)
{
    fl_net *n = begin();
    fl_var *y = TEST_LAYER(
        n, "conv2d", {"input", .var = image(n)}, {"num_filters", .i = 4},
        {"filter_size", .i = 3}, {"stride", .n = 2, .ints = (int64_t[]){1, 2}},
        {"padding", .i = 1}, {"groups", .i = 2}, {"act", .s = "relu"});
    CHECK_STR(test_main_text(n),
              "conv2d(Input=x Filter=conv2d_0.w_0) Output=conv2d_0.tmp_0\n"
              "elementwise_add(X=conv2d_0.tmp_0 Y=conv2d_0.b_0) "
              "Out=conv2d_0.tmp_1\n"
              "relu(X=conv2d_0.tmp_1) Out=conv2d_0.tmp_2");
    CHECK_STR(test_startup_text(n), "fill_constant() Out=conv2d_0.b_0\n"
                                    "gaussian_random() Out=conv2d_0.w_0");
    CHECK_STR(test_shape(n, y), "[-1,4,12,6]");
    CHECK_STR(test_shape(n, test_find(n->main, "conv2d_0.w_0")), "[4,3,3,3]");
    CHECK_STR(test_shape(n, test_find(n->main, "conv2d_0.b_0")), "[4]");
    CHECK_INT(test_attr(n->main, 1, "axis")->i, 1);
    CHECK_INT(test_attr(n->main, 0, "groups")->i, 2);
    CHECK_INT(test_attr(n->main, 0, "strides")->longs[1], 2);
    CHECK(test_attr(n->main, 0, "use_cudnn")->b);
    CHECK_NEAR(test_attr(n->startup, 1, "std")->f, sqrt(2.0 / 54), 1e-6);
    fl_net_free(n);
}

static void conv2d_of_single_channels_is_depthwise(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "conv2d", {"input", .var = image(n)}, {"num_filters", .i = 6},
               {"filter_size", .i = 3}, {"groups", .i = 6},
               {"use_cudnn", .b = false},
               {"bias_attr", .attr = &(fl_param_attr){.none = true}});
    CHECK_STR(test_main_text(n),
              "depthwise_conv2d(Input=x Filter=depthwise_conv2d_0.w_0) "
              "Output=depthwise_conv2d_0.tmp_0");
    fl_net_free(n);
}

static void conv2d_says_what_is_wrong(void)
{
    fl_net *n = begin();
    fl_var *x = image(n), *y = NULL;
    CHECK_ERR(fl_layer_get(n, "conv2d",
                           (fl_arg[]){{"input", .var = x},
                                      {"num_filters", .i = 4},
                                      {"filter_size", .i = 3},
                                      {"groups", .i = 4},
                                      {0}},
                           &y),
              FL_EINVAL, "conv2d: input \"x\" has 6 channels, groups is 4");
    CHECK_ERR(fl_layer_get(n, "conv2d",
                           (fl_arg[]){{"input", .var = x},
                                      {"num_filters", .i = 4},
                                      {"filter_size", .n = 3,
                                       .ints = (int64_t[]){1, 2, 3}},
                                      {0}},
                           &y),
              FL_EINVAL, "conv2d: filter_size has 3 numbers, expected 1 or 2");
    CHECK_ERR(
        fl_layer_get(n, "conv2d",
                     (fl_arg[]){{"input", .var = test_data(n, "flat", FL_F32, 1,
                                                           (int64_t[]){8})},
                                {"num_filters", .i = 4},
                                {"filter_size", .i = 3},
                                {0}},
                     &y),
        FL_ESHAPE, "conv2d: input \"flat\" is [-1,8], expected 4 dims");
    fl_net_free(n);
}

static void pool2d_takes_windows_or_all(void)
{
    fl_net *n = begin();
    fl_var *x = image(n), *y = NULL;
    y = TEST_LAYER(n, "pool2d", {"input", .var = x}, {"pool_size", .i = 2},
                   {"pool_stride", .i = 2}, {"pool_type", .s = "avg"},
                   {"exclusive", .b = false});
    CHECK_STR(test_shape(n, y), "[-1,6,6,6]");
    CHECK_STR(test_attr(n->main, 0, "pooling_type")->s, "avg");
    CHECK(!test_attr(n->main, 0, "exclusive")->b);
    y = TEST_LAYER(n, "pool2d", {"input", .var = x},
                   {"global_pooling", .b = true});
    CHECK_STR(test_shape(n, y), "[-1,6,1,1]");
    CHECK_STR(test_main_text(n), "pool2d(X=x) Out=pool2d_0.tmp_0\n"
                                 "pool2d(X=x) Out=pool2d_1.tmp_0");
    CHECK_ERR(
        fl_layer_get(n, "pool2d", (fl_arg[]){{"input", .var = x}, {0}}, &y),
        FL_EINVAL, "pool2d: pool_size is -1 by -1; only with");
    fl_net_free(n);
}

/* --- norms --- */

static void batch_norm_keeps_running_values(void)
{
    fl_net *n = begin();
    fl_var *y =
        TEST_LAYER(n, "batch_norm", {"input", .var = image(n)},
                   {"act", .s = "relu"}, {"moving_variance_name", .s = "var"});
    CHECK_STR(test_main_text(n),
              "batch_norm(X=x Scale=batch_norm_0.w_0 Bias=batch_norm_0.b_0 "
              "Mean=batch_norm_0.w_1 Variance=var) "
              "Y=batch_norm_0.tmp_2 MeanOut=batch_norm_0.w_1 VarianceOut=var "
              "SavedMean=batch_norm_0.tmp_0 SavedVariance=batch_norm_0.tmp_1\n"
              "relu(X=batch_norm_0.tmp_2) Out=batch_norm_0.tmp_3");
    const fl_var *mean = test_find(n->main, "batch_norm_0.w_1");
    CHECK(mean->param && !mean->param->trainable && mean->stop_gradient);
    CHECK(test_find(n->main, "batch_norm_0.w_0")->param->trainable);
    CHECK_STR(test_shape(n, mean), "[6]");
    CHECK_STR(test_shape(n, y), "[-1,6,12,12]");
    CHECK_STR(test_startup_text(n), "fill_constant() Out=var\n"
                                    "fill_constant() Out=batch_norm_0.w_1\n"
                                    "fill_constant() Out=batch_norm_0.b_0\n"
                                    "fill_constant() Out=batch_norm_0.w_0");
    CHECK_NEAR(test_attr(n->startup, 0, "value")->f, 1, 0);
    CHECK_NEAR(test_attr(n->startup, 1, "value")->f, 0, 0);
    fl_net_free(n);
}

static void batch_norm_never_overwrites_its_input(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 1, (int64_t[]){8});
    fl_var *y = TEST_LAYER(n, "batch_norm", {"input", .var = x},
                           {"in_place", .b = true}, {"name", .s = "bn"});
    CHECK_STR(y->name, "bn.tmp_2");
    CHECK_STR(test_shape(n, test_find(n->main, "bn.w_0")), "[8]");
    fl_net_free(n);
}

static void layer_norm_has_a_scale_for_each_element(void)
{
    fl_net *n = begin();
    fl_var *y = TEST_LAYER(n, "layer_norm", {"input", .var = image(n)},
                           {"begin_norm_axis", .i = 2});
    TEST_LAYER(n, "layer_norm", {"input", .var = y}, {"scale", .b = false},
               {"shift", .b = false}, {"act", .s = "tanh"});
    CHECK_STR(test_main_text(n),
              "layer_norm(X=x Scale=layer_norm_0.w_0 Bias=layer_norm_0.b_0) "
              "Y=layer_norm_0.tmp_2 Mean=layer_norm_0.tmp_0 "
              "Variance=layer_norm_0.tmp_1\n"
              "layer_norm(X=layer_norm_0.tmp_2) Y=layer_norm_1.tmp_2 "
              "Mean=layer_norm_1.tmp_0 Variance=layer_norm_1.tmp_1\n"
              "tanh(X=layer_norm_1.tmp_2) Out=layer_norm_1.tmp_3");
    CHECK_STR(test_shape(n, test_find(n->main, "layer_norm_0.w_0")), "[144]");
    CHECK_ERR(
        fl_layer_get(
            n, "layer_norm",
            (fl_arg[]){{"input", .var = y}, {"begin_norm_axis", .i = 4}, {0}},
            &y),
        FL_ESHAPE, "layer_norm: begin_norm_axis is 4, but input");
    fl_net_free(n);
}

static void others_are_one_operator(void)
{
    fl_net *n = begin();
    fl_var *x = image(n);
    TEST_LAYER(n, "lrn", {"input", .var = x});
    CHECK_NEAR(test_attr(n->main, 0, "k")->f, 1, 0);
    TEST_LAYER(n, "l2_normalize", {"x", .var = x});
    CHECK_INT(test_attr(n->main, 1, "axis")->i, 1);
    TEST_LAYER(n, "maxout", {"x", .var = x}, {"groups", .i = 2});
    TEST_LAYER(n, "prelu", {"x", .var = x}, {"mode", .s = "channel"});
    CHECK_STR(test_main_text(n),
              "lrn(X=x) Out=lrn_0.tmp_1 MidOut=lrn_0.tmp_0\n"
              "norm(X=x) Norm=l2_normalize_0.tmp_1 Out=l2_normalize_0.tmp_0\n"
              "maxout(X=x) Out=maxout_0.tmp_0\n"
              "prelu(X=x Alpha=prelu_0.w_0) Out=prelu_0.tmp_0");
    CHECK_STR(test_shape(n, test_find(n->main, "prelu_0.w_0")), "[1,6,1,1]");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"conv2d adds a bias for each filter", conv2d_adds_a_bias_for_each_filter},
    {"conv2d of single channels is depthwise",
     conv2d_of_single_channels_is_depthwise},
    {"conv2d says what is wrong", conv2d_says_what_is_wrong},
    {"pool2d takes windows, or all", pool2d_takes_windows_or_all},
    {"batch_norm keeps running values", batch_norm_keeps_running_values},
    {"batch_norm never overwrites its input",
     batch_norm_never_overwrites_its_input},
    {"layer_norm has a scale for each element",
     layer_norm_has_a_scale_for_each_element},
    {"lrn, l2_normalize, maxout and prelu are one operator",
     others_are_one_operator},
    {0},
};
