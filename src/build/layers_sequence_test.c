/* SPDX-License-Identifier: Apache-2.0 */
#include "build/layer.h"
#include "build/test_net.h"
#include "check/check.h"

static fl_net *begin(void)
{
    return fl_net_make(fl_check_registry());
}

static fl_var *sequences(fl_net *n, const char *name, int64_t width)
{
    return TEST_LAYER(n, "data", {"name", .s = name}, {"shape", .i = width},
                      {"lod_level", .i = 1});
}

static void sequence_conv_looks_to_both_sides(void)
{
    fl_net *n = begin();
    fl_var *x = sequences(n, "x", 8);
    fl_var *y = TEST_LAYER(n, "sequence_conv", {"input", .var = x},
                           {"num_filters", .i = 5}, {"filter_size", .i = 4},
                           {"act", .s = "tanh"});
    CHECK_STR(test_main_text(n),
              "sequence_conv(X=x Filter=sequence_conv_0.w_0) "
              "Out=sequence_conv_0.tmp_0\n"
              "elementwise_add(X=sequence_conv_0.tmp_0 Y=sequence_conv_0.b_0) "
              "Out=sequence_conv_0.tmp_1\n"
              "tanh(X=sequence_conv_0.tmp_1) Out=sequence_conv_0.tmp_2");
    CHECK_STR(test_shape(n, test_find(n->main, "sequence_conv_0.w_0")),
              "[32,5]");
    CHECK_STR(test_shape(n, test_find(n->main, "sequence_conv_0.b_0")), "[5]");
    CHECK_INT(test_attr(n->main, 0, "contextStart")->i, -2);
    CHECK_INT(test_attr(n->main, 0, "contextLength")->i, 4);
    CHECK_INT(y->lod_level, 1);
    fl_net_free(n);
}

static void others_are_one_operator(void)
{
    fl_net *n = begin();
    fl_var *x = sequences(n, "x", 1), *y = sequences(n, "y", 1);
    TEST_LAYER(n, "sequence_softmax", {"input", .var = x});
    TEST_LAYER(n, "sequence_expand", {"x", .var = x}, {"y", .var = y},
               {"ref_level", .i = 0});
    TEST_LAYER(n, "sequence_concat",
               {"input", .n = 2, .vars = (fl_var *[]){x, y}});
    TEST_LAYER(n, "sequence_reshape", {"input", .var = x}, {"new_dim", .i = 2});
    TEST_LAYER(n, "lod_reset", {"x", .var = x}, {"y", .var = y});
    TEST_LAYER(n, "lod_reset", {"x", .var = x},
               {"target_lod", .n = 3, .ints = (int64_t[]){0, 2, 3}});
    CHECK_STR(test_main_text(n),
              "sequence_softmax(X=x) Out=sequence_softmax_0.tmp_0\n"
              "sequence_expand(X=x Y=y) Out=sequence_expand_0.tmp_0\n"
              "sequence_concat(X=x,y) Out=sequence_concat_0.tmp_0\n"
              "sequence_reshape(X=x) Out=sequence_reshape_0.tmp_0\n"
              "lod_reset(X=x Y=y) Out=lod_reset_0.tmp_0\n"
              "lod_reset(X=x) Out=lod_reset_1.tmp_0");
    CHECK_INT(test_attr(n->main, 1, "ref_level")->i, 0);
    CHECK_INT(test_attr(n->main, 5, "target_lod")->longs[1], 2);
    CHECK_ERR(
        fl_layer_get(n, "lod_reset", (fl_arg[]){{"x", .var = x}, {0}}, &y),
        FL_EINVAL, "lod_reset: give y or target_lod");
    fl_net_free(n);
}

static void labels_and_places(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 1, (int64_t[]){8}), *y = NULL;
    TEST_LAYER(n, "cos_sim", {"X", .var = x}, {"Y", .var = x});
    TEST_LAYER(n, "label_smooth", {"label", .var = x});
    TEST_LAYER(n, "argmax", {"x", .var = x}, {"axis", .i = 1});
    TEST_LAYER(n, "pad", {"x", .var = x},
               {"paddings", .n = 4, .ints = (int64_t[]){0, 0, 1, 1}});
    CHECK_STR(test_main_text(n),
              "cos_sim(X=x Y=x) Out=cos_sim_0.tmp_0 XNorm=cos_sim_0.tmp_1 "
              "YNorm=cos_sim_0.tmp_2\n"
              "label_smooth(X=x) Out=label_smooth_0.tmp_0\n"
              "arg_max(X=x) Out=arg_max_0.tmp_0\n"
              "pad(X=x) Out=pad_0.tmp_0");
    CHECK_NEAR(test_attr(n->main, 1, "epsilon")->f, 0.1, 1e-7);
    CHECK_ERR(
        fl_layer_get(n, "label_smooth",
                     (fl_arg[]){{"label", .var = x}, {"epsilon", .f = 2}, {0}},
                     &y),
        FL_EINVAL, "label_smooth: epsilon is 2, expected 0 to 1");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"sequence_conv looks to both sides", sequence_conv_looks_to_both_sides},
    {"layers over sequences are one operator", others_are_one_operator},
    {"cos_sim, label_smooth, argmax and pad are one operator",
     labels_and_places},
    {0},
};
