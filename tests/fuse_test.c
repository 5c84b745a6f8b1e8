/* SPDX-License-Identifier: Apache-2.0 */
#include "api/engine.h"
#include "base/mem.h"
#include "base/test.h"
#include "build/net.h"
#include "check/check.h"
#include "click.h"
#include "exec/exe.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 100,
};

static void train(fl_engine *e, bool no_fuse, const char *optimizer,
                  double *losses)
{
    fl_net *n = fl_net_new(e);
    fl_net_seed(n, 5);
    fl_var *cost = click_net(n);
    CHECK_OK(fl_minimize(n, cost, optimizer,
                         (fl_arg[]){{"learning_rate", .f = 0.05}, {0}}));
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, &(fl_exe_opts){.no_fuse = no_fuse});
    fl_fetch loss = {fl_var_name(cost), {0}};
    CHECK_OK(fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL));
    for (int i = 0; i < STEPS; i++) {
        batch b = {0};
        make_batch(&b, i);
        CHECK_OK(
            fl_exe_run(exe, fl_net_main(n), s, SLOTS + 2, b.feeds, 1, &loss));
        losses[i] = *(float *)loss.tensor.data;
    }
    fl_tensor_fini(&loss.tensor);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_net_free(n);
}

static void losses_agree_for_a_hundred_steps(void)
{
    const char *optimizers[] = {"sgd", "adagrad"};
    fl_engine *e = fl_engine_new();
    for (int o = 0; o < 2; o++) {
        double fused[STEPS], plain[STEPS];
        train(e, false, optimizers[o], fused);
        train(e, true, optimizers[o], plain);
        for (int i = 0; i < STEPS; i++)
            CHECK_NEAR(fused[i], plain[i], 1e-5);
        CHECK(fabs(fused[STEPS - 1] - fused[0]) > 1e-3); /* it did learn */
    }
    fl_engine_free(e);
}

/* The types in a plan of the click model, one a line. */
static char *plan_of(fl_engine *e, const char *optimizer, const char *fetch)
{
    fl_net *n = fl_net_new(e);
    fl_var *cost = click_net(n);
    CHECK_OK(fl_minimize(n, cost, optimizer,
                         (fl_arg[]){{"learning_rate", .f = 0.05}, {0}}));
    fl_scope *s = fl_scope_new();
    fl_plan *plan;
    batch b = {0};
    make_batch(&b, 0);
    fl_fetch got = {fetch ? fetch : fl_var_name(cost), {0}};
    fl_exec_env env = {
        .registry = e->registry, .disk = e->disk, .entropy = &e->entropy};
    fl_request order = {fl_net_main(n), s, SLOTS + 2, 1, b.feeds, &got};
    CHECK_OK(fl_plan_new(&env, &order, NULL, &plan));
    char *text = fl_plan_text(plan);
    fl_plan_free(plan);
    fl_scope_free(s);
    fl_net_free(n);
    return text;
}

static void every_pattern_of_a_click_model_is_found(void)
{
    fl_engine *e = fl_engine_new();
    char *text = plan_of(e, "sgd", NULL);
    CHECK_STR(text, "0 fused_embed_concat\n"
                    "0 fused_fc\n"
                    "0 fused_fc\n"
                    "0 fused_fc\n"
                    "0 fused_fc\n"
                    "0 softmax\n"
                    "0 cross_entropy2\n"
                    "0 mean\n"
                    "0 fill_constant\n"
                    "0 mean_grad\n"
                    "0 fused_softmax_ce_grad\n"
                    "0 fused_act_bias_grad\n"
                    "0 mul_grad\n"
                    "0 fused_mul_sgd\n"
                    "0 fused_act_bias_grad\n"
                    "0 mul_grad\n"
                    "0 fused_mul_sgd\n"
                    "0 fused_act_bias_grad\n"
                    "0 mul_grad\n"
                    "0 fused_mul_sgd\n"
                    "0 fused_act_bias_grad\n"
                    "0 mul_grad\n"
                    "0 fused_mul_sgd\n"
                    "0 sgd\n"
                    "0 sgd\n"
                    "0 sgd\n"
                    "0 sgd\n"
                    "0 fused_embed_sgd\n");
    fl_mem_free(text);
    fl_engine_free(e);
}

static void what_is_fetched_is_not_fused_away(void)
{
    fl_engine *e = fl_engine_new();
    char *text = plan_of(e, "sgd", "fc_0.tmp_0");
    CHECK(strstr(text, "0 mul\n"));
    fl_mem_free(text);
    text = plan_of(e, "sgd", "fc_1.w_0@GRAD");
    CHECK(strstr(text, "0 fused_mul_sgd\n"));
    CHECK(strstr(text, "0 mul_grad\n"));
    fl_mem_free(text);
    fl_engine_free(e);
}

/* A schedule with branches: the program has sub-blocks. */
static void fuses_beside_sub_blocks(void)
{
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    fl_var *cost = click_net(n);
    fl_var *rate =
        FL_LAYER(n, "piecewise_decay",
                 {"boundaries", .n = 2, .floats = (double[]){2, 4}},
                 {"values", .n = 3, .floats = (double[]){0.1, 0.01, 0.001}});
    CHECK_OK(
        fl_minimize(n, cost, "sgd",
                    (fl_arg[]){{"learning_rate", .n = 1, .var = rate}, {0}}));
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_fetch got = {fl_var_name(rate), {0}};
    const float want[] = {0.1f, 0.1f, 0.01f, 0.01f, 0.001f, 0.001f};
    CHECK_OK(fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL));
    for (int i = 0; i < 6; i++) {
        batch b = {0};
        make_batch(&b, i);
        CHECK_OK(
            fl_exe_run(exe, fl_net_main(n), s, SLOTS + 2, b.feeds, 1, &got));
        CHECK_NEAR(*(float *)got.tensor.data, want[i], 0);
    }
    fl_tensor_fini(&got.tensor);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_net_free(n);
    fl_engine_free(e);
}

static void another_optimiser_keeps_its_gradients(void)
{
    fl_engine *e = fl_engine_new();
    char *text = plan_of(e, "adagrad", NULL);
    CHECK(!strstr(text, "sgd"));
    CHECK(strstr(text, "0 lookup_table_grad\n"));
    CHECK(strstr(text, "0 fused_act_bias_grad\n"));
    fl_mem_free(text);
    fl_engine_free(e);
}

const fl_test fl_tests[] = {
    {"fused and plain losses agree for a hundred steps",
     losses_agree_for_a_hundred_steps},
    {"every pattern of a click model is found",
     every_pattern_of_a_click_model_is_found},
    {"what is fetched is not fused away", what_is_fetched_is_not_fused_away},
    {"a program with sub-blocks is fused and right", fuses_beside_sub_blocks},
    {"another optimiser keeps its gradients",
     another_optimiser_keeps_its_gradients},
    {0},
};
