/* SPDX-License-Identifier: Apache-2.0 */
#include "build/layer.h"
#include "build/test_net.h"
#include "check/check.h"

static fl_net *begin(void)
{
    return fl_net_make(fl_check_registry());
}

static void data_norm_keeps_three_summaries(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 1, (int64_t[]){8});
    TEST_LAYER(n, "data_norm", {"input", .var = x}, {"act", .s = "relu"});
    CHECK_STR(test_main_text(n),
              "data_norm(X=x BatchSize=data_norm_0.batch_size "
              "BatchSum=data_norm_0.batch_sum "
              "BatchSquareSum=data_norm_0.batch_square_sum) "
              "Y=data_norm_0.tmp_2 Means=data_norm_0.tmp_0 "
              "Scales=data_norm_0.tmp_1\n"
              "relu(X=data_norm_0.tmp_2) Out=data_norm_0.tmp_3");
    const fl_var *size = test_find(n->main, "data_norm_0.batch_size");
    CHECK(size->param->summary && size->param->trainable);
    CHECK_STR(test_shape(n, size), "[8]");
    fl_net_free(n);
}

static void data_norm_takes_rows_only(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 2, (int64_t[]){8, 2}), *out = NULL;
    const fl_arg args[] = {{"input", .var = x}, {0}};
    CHECK_ERR(fl_layer_get(n, "data_norm", args, &out), FL_ESHAPE,
              "data_norm: input \"x\" is [-1,8,2], expected [N,C]");
    fl_net_free(n);
}

static void hash_gives_ids_without_a_gradient(void)
{
    fl_net *n = begin();
    fl_var *ids = test_data(n, "ids", FL_I64, 1, (int64_t[]){1});
    fl_var *out = TEST_LAYER(n, "hash", {"input", .var = ids},
                             {"hash_size", .i = 100}, {"num_hash", .i = 4});
    CHECK_STR(test_main_text(n), "hash(X=ids) Out=hash_0.tmp_0");
    CHECK_STR(test_shape(n, out), "[-1,4,1]");
    CHECK_INT(test_attr(n->main, 0, "mod_by")->i, 100);
    CHECK(out->stop_gradient);
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"data_norm keeps three summaries", data_norm_keeps_three_summaries},
    {"data_norm takes rows only", data_norm_takes_rows_only},
    {"hash gives ids without a gradient", hash_gives_ids_without_a_gradient},
    {0},
};
