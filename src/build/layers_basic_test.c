/* SPDX-License-Identifier: Apache-2.0 */
#include "build/layer.h"
#include "build/test_net.h"
#include "check/check.h"

static fl_net *begin(void)
{
    return fl_net_make(fl_check_registry());
}

static fl_var *x8(fl_net *n)
{
    return test_data(n, "x", FL_F32, 1, (int64_t[]){8});
}

static fl_var *ids(fl_net *n)
{
    return TEST_LAYER(n, "data", {"name", .s = "ids"}, {"shape", .i = 1},
                      {"dtype", .i = FL_I64}, {"lod_level", .i = 1});
}

/* --- data --- */

static const char *data_shape(fl_net *n, const char *name, int rank,
                              const int64_t *dim, bool append)
{
    return test_shape(n, TEST_LAYER(n, "data", {"name", .s = name},
                                    {"shape", .n = rank, .ints = dim},
                                    {"append_batch_size", .b = append}));
}

static void data_gets_the_batch_in_front(void)
{
    fl_net *n = begin();
    CHECK_STR(data_shape(n, "a", 1, (int64_t[]){13}, true), "[-1,13]");
    CHECK_STR(data_shape(n, "b", 1, (int64_t[]){13}, false), "[13]");
    CHECK_STR(data_shape(n, "c", 2, (int64_t[]){-1, 4}, true), "[-1,4]");
    CHECK_STR(data_shape(n, "d", 2, (int64_t[]){4, -2}, true), "[4,-1]");
    const fl_var *v = ids(n);
    CHECK(v->is_data && v->stop_gradient && !v->persistable);
    CHECK_INT(v->dtype, FL_I64);
    CHECK_INT(v->lod_level, 1);
    CHECK_STR(test_main_text(n), "");
    CHECK_STR(test_startup_text(n), "");
    fl_net_free(n);
}

static void data_has_limits(void)
{
    fl_net *n = begin();
    const int64_t dim[FL_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    fl_var *v = NULL;
    CHECK_ERR(fl_layer_get(n, "data",
                           (fl_arg[]){{"name", .s = "x"},
                                      {"shape", .n = FL_MAX_RANK, .ints = dim},
                                      {0}},
                           &v),
              FL_ESHAPE, "data \"x\": 10 dimensions, at most 9");
    fl_net_free(n);
}

/* --- fc --- */

static void fc_names_as_fluid_does(void)
{
    fl_net *n = begin();
    fl_var *h = TEST_LAYER(n, "fc", {"input", .var = x8(n)}, {"size", .i = 4},
                           {"act", .s = "relu"});
    fl_var *y = TEST_LAYER(n, "fc", {"input", .var = h}, {"size", .i = 1});
    CHECK_STR(test_main_text(n),
              "mul(X=x Y=fc_0.w_0) Out=fc_0.tmp_0\n"
              "elementwise_add(X=fc_0.tmp_0 Y=fc_0.b_0) Out=fc_0.tmp_1\n"
              "relu(X=fc_0.tmp_1) Out=fc_0.tmp_2\n"
              "mul(X=fc_0.tmp_2 Y=fc_1.w_0) Out=fc_1.tmp_0\n"
              "elementwise_add(X=fc_1.tmp_0 Y=fc_1.b_0) Out=fc_1.tmp_1");
    CHECK_STR(test_startup_text(n), "fill_constant() Out=fc_1.b_0\n"
                                    "uniform_random() Out=fc_1.w_0\n"
                                    "fill_constant() Out=fc_0.b_0\n"
                                    "uniform_random() Out=fc_0.w_0");
    CHECK_STR(test_shape(n, y), "[-1,1]");
    CHECK_STR(test_shape(n, test_find(n->main, "fc_0.w_0")), "[8,4]");
    CHECK_STR(test_shape(n, test_find(n->main, "fc_0.b_0")), "[4]");
    CHECK_INT(test_attr(n->main, 1, "axis")->i, 1);
    fl_net_free(n);
}

static void fc_flattens(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 3, (int64_t[]){3, 4, 5});
    fl_var *y = TEST_LAYER(n, "fc", {"input", .var = x}, {"size", .i = 2},
                           {"num_flatten_dims", .i = 2});
    CHECK_STR(test_shape(n, y), "[-1,3,2]");
    CHECK_STR(test_shape(n, test_find(n->main, "fc_0.w_0")), "[20,2]");
    CHECK_STR(test_shape(n, test_find(n->main, "fc_0.b_0")), "[2]");
    CHECK_INT(test_attr(n->main, 0, "x_num_col_dims")->i, 2);
    CHECK_INT(test_attr(n->main, 1, "axis")->i, 2);
    CHECK_ERR(fl_layer_get(n, "fc",
                           (fl_arg[]){{"input", .var = x},
                                      {"size", .i = 2},
                                      {"num_flatten_dims", .i = 4},
                                      {0}},
                           &y),
              FL_ESHAPE,
              "fc: num_flatten_dims is 4, but input \"x\" is [-1,3,4,5]");
    fl_net_free(n);
}

static void fc_adds_several_inputs_up(void)
{
    fl_net *n = begin();
    fl_var *in[] = {x8(n), test_data(n, "z", FL_F32, 1, (int64_t[]){3})};
    const fl_param_attr attrs[] = {{.name = "wx"}, {.name = "wz"}};
    TEST_LAYER(n, "fc", {"input", .n = 2, .vars = in}, {"size", .i = 2},
               {"param_attr", .n = 2, .attr = attrs},
               {"bias_attr", .attr = &(fl_param_attr){.none = true}},
               {"name", .s = "top"});
    CHECK_STR(test_main_text(n), "mul(X=x Y=wx) Out=top.tmp_0\n"
                                 "mul(X=z Y=wz) Out=top.tmp_1\n"
                                 "sum(X=top.tmp_0,top.tmp_1) Out=top.tmp_2");
    fl_var *v = NULL;
    CHECK_ERR(fl_layer_get(n, "fc",
                           (fl_arg[]){{"input", .var = in[0]},
                                      {"size", .i = 2},
                                      {"param_attr", .n = 2, .attr = attrs},
                                      {0}},
                           &v),
              FL_EINVAL, "fc: 2 parameter attributes for 1 inputs");
    fl_net_free(n);
}

static void fc_with_a_name_names_its_parameters(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "fc", {"input", .var = x8(n)}, {"size", .i = 2},
               {"name", .s = "top"});
    TEST_LAYER(n, "fc", {"input", .var = x8(n)}, {"size", .i = 2},
               {"bias_attr", .attr = &(fl_param_attr){.name = "bias"}});
    CHECK_STR(test_main_text(n),
              "mul(X=x Y=top.w_0) Out=top.tmp_0\n"
              "elementwise_add(X=top.tmp_0 Y=top.b_0) Out=top.tmp_1\n"
              "mul(X=x Y=fc_0.w_0) Out=fc_0.tmp_0\n"
              "elementwise_add(X=fc_0.tmp_0 Y=bias) Out=fc_0.tmp_1");
    fl_net_free(n);
}

/* --- embedding --- */

static void embedding_looks_up(void)
{
    fl_net *n = begin();
    fl_var *y = TEST_LAYER(n, "embedding", {"input", .var = ids(n)},
                           {"size", .n = 2, .ints = (int64_t[]){100, 16}},
                           {"is_sparse", .b = true}, {"padding_idx", .i = -1});
    CHECK_STR(test_main_text(n),
              "lookup_table(W=embedding_0.w_0 Ids=ids) Out=embedding_0.tmp_0");
    CHECK_STR(test_shape(n, y), "[-1,16]");
    CHECK_INT(y->lod_level, 1);
    CHECK(test_attr(n->main, 0, "is_sparse")->b);
    CHECK(test_attr(n->main, 0, "remote_prefetch")->b);
    CHECK_INT(test_attr(n->main, 0, "padding_idx")->i, 99);
    fl_net_free(n);
}

static void embeddings_share_a_table(void)
{
    fl_net *n = begin();
    const fl_param_attr shared = {.name = "emb",
                                  .init = &(fl_init){"uniform", -0.1, 0.1}};
    const int64_t size[] = {100, 16};
    for (int i = 0; i < 2; i++)
        TEST_LAYER(n, "embedding", {"input", .var = ids(n)},
                   {"size", .n = 2, .ints = size},
                   {"param_attr", .attr = &shared});
    CHECK_STR(test_main_text(n),
              "lookup_table(W=emb Ids=ids) Out=embedding_0.tmp_0\n"
              "lookup_table(W=emb Ids=ids) Out=embedding_1.tmp_0");
    CHECK_STR(test_startup_text(n), "uniform_random() Out=emb");
    CHECK_INT(test_attr(n->main, 0, "padding_idx")->i, -1);
    CHECK(!test_attr(n->main, 0, "remote_prefetch")->b);
    fl_var *v = NULL;
    CHECK_ERR(fl_layer_get(
                  n, "embedding",
                  (fl_arg[]){{"input", .var = ids(n)}, {"size", .i = 3}, {0}},
                  &v),
              FL_EINVAL, "embedding: size has 1 numbers, expected 2");
    fl_net_free(n);
}

/* --- dropout, softmax --- */

static void dropout_takes_the_programs_seed(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n);
    TEST_LAYER(n, "dropout", {"x", .var = x}, {"dropout_prob", .f = 0.25});
    CHECK(!test_attr(n->main, -1, "fix_seed")->b);
    n->main->random_seed = 90;
    TEST_LAYER(n, "dropout", {"x", .var = x}, {"dropout_prob", .f = 0.25});
    CHECK(test_attr(n->main, -1, "fix_seed")->b);
    CHECK_INT(test_attr(n->main, -1, "seed")->i, 90);
    TEST_LAYER(n, "dropout", {"x", .var = x}, {"dropout_prob", .f = 0.25},
               {"seed", .i = 7});
    CHECK_INT(test_attr(n->main, -1, "seed")->i, 7);
    CHECK_NEAR(test_attr(n->main, -1, "dropout_prob")->f, 0.25, 0);
    CHECK_STR(test_main_text(n),
              "dropout(X=x) Out=dropout_0.tmp_0 Mask=dropout_0.tmp_1\n"
              "dropout(X=x) Out=dropout_1.tmp_0 Mask=dropout_1.tmp_1\n"
              "dropout(X=x) Out=dropout_2.tmp_0 Mask=dropout_2.tmp_1");
    CHECK(test_find(n->main, "dropout_0.tmp_1")->stop_gradient);
    fl_net_free(n);
}

static void softmax_has_an_axis(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "softmax", {"input", .var = x8(n)}, {"axis", .i = 1});
    CHECK_STR(test_main_text(n), "softmax(X=x) Out=softmax_0.tmp_0");
    CHECK_INT(test_attr(n->main, 0, "axis")->i, 1);
    fl_net_free(n);
}

static void softshrink_renames_its_argument(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "softshrink", {"x", .var = x8(n)}, {"alpha", .f = 0.25});
    TEST_LAYER(n, "softshrink", {"x", .var = x8(n)});
    CHECK_NEAR(test_attr(n->main, 0, "lambda")->f, 0.25, 0);
    CHECK_NEAR(test_attr(n->main, 1, "lambda")->f, 0.5, 0);
    fl_net_free(n);
}

/* --- losses --- */

static void cross_entropy_depends_on_the_label(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n),
           *label = test_data(n, "label", FL_I64, 1, (int64_t[]){1});
    fl_var *soft = test_data(n, "soft", FL_F32, 1, (int64_t[]){8});
    fl_var *y = TEST_LAYER(n, "cross_entropy", {"input", .var = x},
                           {"label", .var = label});
    TEST_LAYER(n, "cross_entropy", {"input", .var = x}, {"label", .var = soft},
               {"soft_label", .b = true});
    CHECK_STR(test_main_text(n),
              "cross_entropy2(X=x Label=label) Y=cross_entropy2_0.tmp_0 "
              "XShape=cross_entropy2_0.tmp_1 MatchX=cross_entropy2_0.tmp_2\n"
              "cross_entropy(X=x Label=soft) Y=cross_entropy_0.tmp_0");
    CHECK_STR(test_shape(n, y), "[-1,1]");
    CHECK_INT(test_attr(n->main, 0, "ignore_index")->i, -100);
    CHECK(test_attr(n->main, 1, "soft_label")->b);
    fl_net_free(n);
}

static void softmax_with_cross_entropy_returns_both_on_request(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n), *out[2] = {0};
    fl_var *label = test_data(n, "label", FL_I64, 1, (int64_t[]){1});
    fl_arg args[] = {{"logits", .var = x}, {"label", .var = label}, {0}, {0}};
    CHECK_INT(fl_layer_all(n, "softmax_with_cross_entropy", args, 2, out), 1);
    CHECK_STR(out[0]->name, "softmax_with_cross_entropy_0.tmp_1");
    args[2] = (fl_arg){"return_softmax", .b = true};
    CHECK_INT(fl_layer_all(n, "softmax_with_cross_entropy", args, 2, out), 2);
    CHECK_STR(out[1]->name, "softmax_with_cross_entropy_1.tmp_0");
    CHECK_OK(fl_net_error(n));
    fl_net_free(n);
}

static void losses_name_their_parts(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n), *y = test_data(n, "y", FL_F32, 1, (int64_t[]){8});
    fl_var *p = test_data(n, "p", FL_F32, 1, (int64_t[]){1});
    fl_var *l = test_data(n, "l", FL_F32, 1, (int64_t[]){1});
    TEST_LAYER(n, "square_error_cost", {"input", .var = x},
               {"label", .var = y});
    TEST_LAYER(n, "sigmoid_cross_entropy_with_logits", {"x", .var = x},
               {"label", .var = y}, {"name", .s = "loss"});
    TEST_LAYER(n, "smooth_l1", {"x", .var = x}, {"y", .var = y},
               {"sigma", .f = 2});
    TEST_LAYER(n, "huber_loss", {"input", .var = p}, {"label", .var = l},
               {"delta", .f = 2});
    TEST_LAYER(n, "log_loss", {"input", .var = p}, {"label", .var = l});
    CHECK_STR(
        test_main_text(n),
        "elementwise_sub(X=x Y=y) Out=square_error_cost_0.tmp_0\n"
        "square(X=square_error_cost_0.tmp_0) Out=square_error_cost_0.tmp_1\n"
        "sigmoid_cross_entropy_with_logits(X=x Label=y) Out=loss\n"
        "smooth_l1_loss(X=x Y=y) Diff=smooth_l1_loss_0.tmp_0 "
        "Out=smooth_l1_loss_0.tmp_1\n"
        "huber_loss(X=p Y=l) Residual=huber_loss_0.tmp_0 "
        "Out=huber_loss_0.tmp_1\n"
        "log_loss(Predicted=p Labels=l) Loss=log_loss_0.tmp_0");
    CHECK_NEAR(test_attr(n->main, 3, "sigma")->f, 2, 0);
    CHECK_NEAR(test_attr(n->main, 5, "epsilon")->f, 1e-4, 1e-9);
    fl_net_free(n);
}

static void margin_rank_loss_takes_left_and_right(void)
{
    fl_net *n = begin();
    const int64_t one = 1;
    fl_var *a = test_data(n, "a", FL_F32, 1, &one);
    fl_var *b = test_data(n, "b", FL_F32, 1, &one);
    fl_var *l = test_data(n, "l", FL_F32, 1, &one);
    TEST_LAYER(n, "margin_rank_loss", {"label", .var = l}, {"left", .var = a},
               {"right", .var = b}, {"margin", .f = 0.5});
    CHECK_STR(test_main_text(n), "margin_rank_loss(X1=a X2=b Label=l) "
                                 "Activated=margin_rank_loss_0.tmp_1 "
                                 "Out=margin_rank_loss_0.tmp_0");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"data gets the batch in front", data_gets_the_batch_in_front},
    {"data has limits", data_has_limits},
    {"fc names as Fluid does", fc_names_as_fluid_does},
    {"fc flattens", fc_flattens},
    {"fc adds several inputs up", fc_adds_several_inputs_up},
    {"fc with a name names its parameters",
     fc_with_a_name_names_its_parameters},
    {"embedding looks up", embedding_looks_up},
    {"embeddings share a table", embeddings_share_a_table},
    {"dropout takes the program's seed", dropout_takes_the_programs_seed},
    {"softmax has an axis", softmax_has_an_axis},
    {"softshrink renames its argument", softshrink_renames_its_argument},
    {"cross_entropy depends on the label", cross_entropy_depends_on_the_label},
    {"softmax_with_cross_entropy returns both on request",
     softmax_with_cross_entropy_returns_both_on_request},
    {"losses name their parts", losses_name_their_parts},
    {"margin_rank_loss takes left and right",
     margin_rank_loss_takes_left_and_right},
    {0},
};
