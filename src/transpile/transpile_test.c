/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in, programs out: Fluid's own shapes, optimiser by optimiser and
 * schedule by schedule. */
#include "transpile/test_transpile.h"

#define FB                                                                     \
    "mul elementwise_add elementwise_sub square mean fill_constant mean_grad " \
    "square_grad elementwise_sub_grad elementwise_add_grad "
#define BACK    "send_barrier recv recv fetch_barrier concat"
#define TRAINER FB "send mul_grad split_byref send " BACK

/* --- whole texts, once --- */

static void fit_a_line_for_trainers(void)
{
    scene s;
    scene_begin(&s);
    scene_line(&s, 13, 1, NULL, NULL);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_trainer(&s),
              FB "send mul_grad send send_barrier recv recv fetch_barrier");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "op_role=4"),
              "send(X=fc_0.b_0@GRAD.trainer_0) -> Out=__control_var@0 "
              "{op_role=4, epmap=[\"127.0.0.1:6174\"], "
              "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD.trainer_0\"]}\n"
              "send(X=fc_0.w_0@GRAD.trainer_0) -> Out=__control_var@1 "
              "{op_role=4, epmap=[\"127.0.0.1:6175\"], "
              "op_role_var=[\"fc_0.w_0\", \"fc_0.w_0@GRAD.trainer_0\"]}\n"
              "send_barrier(X=[__control_var@0, __control_var@1]) -> "
              "Out=__control_var@2 {op_role=4, "
              "endpoints=[\"127.0.0.1:6174\", \"127.0.0.1:6175\"]}\n"
              "recv(X=__control_var@2) -> Out=fc_0.b_0 {op_role=4, "
              "epmap=[\"127.0.0.1:6174\"], op_role_var=[\"fc_0.b_0\", "
              "\"fc_0.b_0@GRAD.trainer_0\"]}\n"
              "recv(X=__control_var@2) -> Out=fc_0.w_0 {op_role=4, "
              "epmap=[\"127.0.0.1:6175\"], op_role_var=[\"fc_0.w_0\", "
              "\"fc_0.w_0@GRAD.trainer_0\"]}\n"
              "fetch_barrier() -> Out=[fc_0.b_0, fc_0.w_0] {op_role=4, "
              "endpoints=[\"127.0.0.1:6174\", \"127.0.0.1:6175\"]}\n");
    CHECK_STR(scene_brief(&s, s.cut->trainer_startup),
              "block 0\n"
              "  param fc_0.w_0: f32[13,1]\n"
              "  param fc_0.b_0: f32[1]\n"
              "  var learning_rate_0: f32[1] persistable\n"
              "  var __control_var@0: f32[]\n"
              "  fill_constant() -> Out=learning_rate_0 {shape=[1l], "
              "value=0.5}\n"
              "  fill_constant() -> Out=fc_0.b_0 {shape=[1l]}\n"
              "  uniform_random() -> Out=fc_0.w_0 {shape=[13l, 1l], "
              "min=-0.65465367, max=0.65465367}\n"
              "  recv() -> Out=fc_0.b_0 {op_role=4, "
              "epmap=[\"127.0.0.1:6174\"]}\n"
              "  recv() -> Out=fc_0.w_0 {op_role=4, "
              "epmap=[\"127.0.0.1:6175\"]}\n"
              "  fetch_barrier() -> Out=__control_var@0 {op_role=4, "
              "endpoints=[\"127.0.0.1:6174\", \"127.0.0.1:6175\"]}\n");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "mul_grad("),
              "mul_grad(X=x, Y=fc_0.w_0, Out@GRAD=fc_0.tmp_0@GRAD) -> "
              "X@GRAD=@EMPTY@, Y@GRAD=fc_0.w_0@GRAD.trainer_0 {op_role=1, "
              "op_role_var=[\"fc_0.w_0\", \"fc_0.w_0@GRAD.trainer_0\"]}\n");
    scene_end(&s);
}

static void fit_a_line_for_a_server(void)
{
    scene s;
    scene_begin(&s);
    scene_line(&s, 13, 1, NULL, NULL);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_brief(&s, s.cut->server[0]),
              "block 0\n"
              "  var fc_0.b_0: f32[1] persistable\n"
              "  var fc_0.b_0@GRAD: f32[1] persistable\n"
              "  var fc_0.b_0@GRAD.trainer_0: f32[1]\n"
              "  var fc_0.b_0@GRAD.trainer_1: f32[1]\n"
              "  var learning_rate_0: f32[1] persistable\n"
              "  listen_and_serv(X=[fc_0.b_0@GRAD.trainer_0, "
              "fc_0.b_0@GRAD.trainer_1]) {endpoint=\"127.0.0.1:6174\", "
              "Fanin=2, sync_mode=true, optimize_blocks=[@1], "
              "grad_to_block_id=[\"fc_0.b_0@GRAD:1\"]}\n"
              "block 1 parent=0\n"
              "  sum(X=[fc_0.b_0@GRAD.trainer_0, fc_0.b_0@GRAD.trainer_1]) "
              "-> Out=fc_0.b_0@GRAD\n"
              "  scale(X=fc_0.b_0@GRAD) -> Out=fc_0.b_0@GRAD {scale=0.5}\n"
              "  sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, "
              "Grad=fc_0.b_0@GRAD) -> ParamOut=fc_0.b_0 {op_role=2, "
              "op_role_var=[\"fc_0.b_0\", \"fc_0.b_0@GRAD\"]}\n");
    CHECK_STR(scene_brief(&s, s.cut->server_startup[0]),
              "block 0\n"
              "  var fc_0.b_0: f32[1] persistable\n"
              "  var fc_0.b_0@GRAD: f32[1] persistable\n"
              "  var fc_0.b_0@GRAD.trainer_0: f32[1]\n"
              "  var fc_0.b_0@GRAD.trainer_1: f32[1]\n"
              "  var learning_rate_0: f32[1] persistable\n"
              "  fill_constant() -> Out=learning_rate_0 {shape=[1l], "
              "value=0.5}\n"
              "  fill_constant() -> Out=fc_0.b_0 {shape=[1l]}\n");
    scene_end(&s);
}

/* The programs that go in are as they were. */
static void leaves_what_it_cuts_alone(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "sgd", scene_rate);
    const char *main = scene_brief(&s, s.net->main);
    const char *startup = scene_brief(&s, s.net->startup);
    scene_cut2(&s);
    CHECK_STR(scene_brief(&s, s.net->main), main);
    CHECK_STR(scene_brief(&s, s.net->startup), startup);
    scene_end(&s);
}

/* --- optimisers --- */

/* What each adds to the update of a piece. */
static const struct {
    const char *name, *update, *state; /* of fc_w on server B */
    fl_arg args[4];
} optimizers[] = {
    {"sgd", "sgd", "", {{"learning_rate", .f = 0.5}, {0}}},
    {"momentum",
     "momentum",
     " fc_w_velocity_0[500,1000]",
     {{"learning_rate", .f = 0.5}, {"momentum", .f = 0.9}, {0}}},
    {"adam",
     "adam scale scale",
     " fc_w_moment1_0[500,1000] fc_w_moment2_0[500,1000] "
     "fc_w_beta1_pow_acc_0[1] fc_w_beta2_pow_acc_0[1]",
     {{"learning_rate", .f = 0.5}, {0}}},
    {"adamax",
     "adamax scale",
     " fc_w_moment_0[500,1000] fc_w_inf_norm_0[500,1000] "
     "fc_w_beta1_pow_acc_0[1]",
     {{"learning_rate", .f = 0.5}, {0}}},
    {"adagrad",
     "adagrad",
     " fc_w_moment_0[500,1000]",
     {{"learning_rate", .f = 0.5}, {0}}},
    {"decayed_adagrad",
     "decayed_adagrad",
     " fc_w_moment_0[500,1000]",
     {{"learning_rate", .f = 0.5}, {0}}},
    {"rmsprop",
     "rmsprop",
     " fc_w_mean_square_0[500,1000] fc_w_mean_grad_0[500,1000] "
     "fc_w_momentum_0[500,1000]",
     {{"learning_rate", .f = 0.5}, {0}}},
    {"ftrl",
     "ftrl",
     " fc_w_squared_0[500,1000] fc_w_linear_0[500,1000]",
     {{"learning_rate", .f = 0.5}, {0}}},
};

static void cuts_every_optimizer(void)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        scene s;
        scene_fc(&s);
        scene_minimize(&s, optimizers[i].name, optimizers[i].args);
        scene_cut2(&s);
        CHECK_STR(scene_trainer(&s), TRAINER);
        CHECK_STR(scene_places(&s), "fc_b:0 fc_w.block0:1 fc_w.block1:0");
        const char *one = fl_arena_printf(s.net->arena, "sum scale %s\n",
                                          optimizers[i].update);
        CHECK_STR(scene_blocks(&s, 0),
                  fl_arena_printf(s.net->arena, "1/0: %s2/0: %s", one, one));
        CHECK_STR(scene_blocks(&s, 1),
                  fl_arena_printf(s.net->arena, "1/0: %s", one));
        CHECK_STR(scene_vars(&s, s.cut->server[1], true),
                  fl_arena_printf(s.net->arena,
                                  "fc_w.block0[500,1000] "
                                  "fc_w@GRAD.block0[500,1000] "
                                  "learning_rate_0[1]%s",
                                  optimizers[i].state));
        scene_end(&s);
    }
}

/* Its table has no learning rate on the op. */
static void cuts_adadelta_too(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "adadelta", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_vars(&s, s.cut->server[1], true),
              "fc_w.block0[500,1000] fc_w@GRAD.block0[500,1000] "
              "fc_w__avg_squared_grad_0[500,1000] "
              "fc_w__avg_squared_update_0[500,1000]");
    scene_end(&s);
}

static void momentum_has_fluids_variables(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "momentum", optimizers[1].args);
    scene_cut2(&s);
    CHECK_STR(scene_vars(&s, s.cut->server[0], true),
              "fc_b[1000] fc_w.block1[500,1000] fc_b@GRAD[1000] "
              "fc_w@GRAD.block1[500,1000] learning_rate_0[1] "
              "fc_b_velocity_0[1000] fc_w_velocity_0[500,1000]");
    CHECK_STR(scene_vars(&s, s.cut->server[0], false),
              "fc_b@GRAD.trainer_0[1000] fc_b@GRAD.trainer_1[1000] "
              "fc_w@GRAD.block1.trainer_0[500,1000] "
              "fc_w@GRAD.block1.trainer_1[500,1000]");
    CHECK_STR(scene_starts(&s, s.cut->server_startup[0]),
              "fill_constant learning_rate_0, fill_constant fc_w_velocity_0, "
              "fill_constant fc_b_velocity_0, fill_constant fc_b, "
              "uniform_random fc_w.block1+500000");
    CHECK_STR(scene_types(&s, s.cut->trainer_startup, 0),
              "fill_constant fill_constant fill_constant fill_constant "
              "uniform_random recv recv fetch_barrier concat");
    scene_end(&s);
}

static void splits_by_rule(void)
{
    for (int i = 0; i < fl_optimizers_count; i++) {
        const fl_optimizer_def *def = &fl_optimizers[i];
        scene s;
        scene_fc(&s);
        scene_minimize_by(&s, def);
        scene_cut2(&s);
        const char *places = scene_rule_of(def)->whole
                                 ? "fc_b:0 fc_w:1"
                                 : "fc_b:0 fc_w.block0:1 fc_w.block1:0";
        CHECK_STR(
            fl_arena_printf(s.net->arena, "%s: %s", def->op, scene_places(&s)),
            fl_arena_printf(s.net->arena, "%s: %s", def->op, places));
        scene_end(&s);
    }
}

/* A norm is the whole's: such a parameter is not cut. */
static void keeps_whole_what_needs_a_norm(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "lars_momentum", optimizers[1].args);
    scene_cut2(&s);
    CHECK_STR(scene_places(&s), "fc_b:0 fc_w:1");
    CHECK_STR(scene_trainer(&s), FB "send mul_grad send send_barrier recv recv "
                                    "fetch_barrier");
    scene_end(&s);
}

/* --- decay and clipping --- */

static void decay_is_the_servers(void)
{
    static const struct {
        const char *kind, *server;
    } rows[] = {
        {"l2", "1/0: sum scale scale sum sgd\n2/0: sum scale scale sum sgd\n"},
        {"l1", "1/0: sum scale sign scale sum sgd\n"
               "2/0: sum scale sign scale sum sgd\n"},
    };
    for (int i = 0; i < 2; i++) {
        scene s;
        const fl_regularizer decay = {rows[i].kind, 0.25f};
        scene_fc(&s);
        scene_minimize(&s, "sgd",
                       (fl_arg[]){{"learning_rate", .f = 0.5},
                                  {"regularization", .regularizer = &decay},
                                  {0}});
        scene_cut2(&s);
        CHECK_STR(scene_trainer(&s), FB "mul_grad send split_byref send " BACK);
        CHECK_STR(scene_blocks(&s, 0), rows[i].server);
        scene_end(&s);
    }
}

static void begin_clipped(scene *s, const fl_clip *clip)
{
    scene_fc(s);
    CHECK_OK(fl_net_set_clip(s->net, clip, 0, NULL));
    scene_minimize(s, "sgd", scene_rate);
    scene_cut2(s);
}

static void clips_by_value_on_servers(void)
{
    scene s;
    begin_clipped(&s, &(fl_clip){"value", .max = 1, .min = -1});
    CHECK_STR(scene_trainer(&s), TRAINER);
    CHECK_STR(scene_blocks(&s, 0),
              "1/0: sum scale clip sgd\n2/0: sum scale clip sgd\n");
    CHECK_STR(scene_lines(&s, s.cut->server[1], "clip"),
              "var clip_1.tmp_0: f32[500,1000]\n"
              "clip(X=fc_w@GRAD.block0) -> Out=clip_1.tmp_0 {min=-1.0, "
              "max=1.0, op_role=2, op_role_var=[\"fc_w\", \"fc_w@GRAD\"]}\n"
              "sgd(Param=fc_w.block0, LearningRate=learning_rate_0, "
              "Grad=clip_1.tmp_0) -> ParamOut=fc_w.block0 {op_role=2, "
              "op_role_var=[\"fc_w\", \"clip_1.tmp_0\"]}\n");
    scene_end(&s);
}

static void clips_by_norm_on_one_server(void)
{
    scene s;
    begin_clipped(&s, &(fl_clip){"norm", .max = 1});
    CHECK_STR(scene_places(&s), "fc_b:0 fc_w:1");
    CHECK_STR(scene_blocks(&s, 1), "1/0: sum scale clip_by_norm sgd\n");
    scene_end(&s);
}

/* It needs all gradients at once: the trainer has them. */
static void clips_by_global_norm_on_trainers(void)
{
    scene s;
    begin_clipped(&s, &(fl_clip){"global_norm", .max = 1});
    CHECK_STR(scene_trainer(&s),
              FB "mul_grad fill_constant square reduce_sum square reduce_sum "
                 "sum sqrt elementwise_max elementwise_div elementwise_mul "
                 "send elementwise_mul split_byref send " BACK);
    CHECK_STR(scene_blocks(&s, 0), "1/0: sum scale sgd\n2/0: sum scale sgd\n");
    CHECK_STR(scene_lines(&s, s.cut->server[1], "sgd("),
              "sgd(Param=fc_w.block0, LearningRate=learning_rate_0, "
              "Grad=elementwise_mul_1.tmp_0.block0) -> ParamOut=fc_w.block0 "
              "{op_role=2, op_role_var=[\"fc_w\", "
              "\"elementwise_mul_1.tmp_0\"]}\n");
    scene_end(&s);
}

/* --- learning rates --- */

/* The ops of block 1; the updates come in the last two blocks. */
static const struct {
    const char *name, *ops;
    int inner; /* blocks below it */
    fl_arg args[6];
} schedules[] = {
    {"exponential_decay",
     "increment cast fill_constant elementwise_div floor fill_constant "
     "elementwise_pow fill_constant elementwise_mul",
     0,
     {{"learning_rate", .f = 1.0},
      {"decay_steps", .i = 100},
      {"decay_rate", .f = 0.1},
      {"staircase", .b = true},
      {0}}},
    {"piecewise_decay",
     "increment cast fill_constant fill_constant less_than logical_not "
     "conditional_block fill_constant fill_constant less_than logical_not "
     "logical_and logical_and conditional_block fill_constant "
     "conditional_block",
     3,
     {{"boundaries", .n = 2, .ints = (int64_t[]){10, 20}},
      {"values", .n = 3, .floats = (double[]){1.0, 0.5, 0.25}},
      {0}}},
    {"noam_decay",
     NULL,
     0,
     {{"d_model", .i = 64}, {"warmup_steps", .i = 10}, {0}}},
    {"natural_exp_decay",
     NULL,
     0,
     {{"learning_rate", .f = 1.0},
      {"decay_steps", .i = 100},
      {"decay_rate", .f = 0.1},
      {0}}},
    {"inverse_time_decay",
     NULL,
     0,
     {{"learning_rate", .f = 1.0},
      {"decay_steps", .i = 100},
      {"decay_rate", .f = 0.1},
      {0}}},
    {"polynomial_decay",
     NULL,
     0,
     {{"learning_rate", .f = 1.0}, {"decay_steps", .i = 100}, {0}}},
    {"cosine_decay",
     NULL,
     0,
     {{"learning_rate", .f = 1.0},
      {"step_each_epoch", .i = 10},
      {"epochs", .i = 4},
      {0}}},
};

static void make_scheduled(scene *s, const char *name, const fl_arg *args)
{
    scene_fc(s);
    fl_var *rate = test_layer(s->net, name, args);
    scene_minimize(s, "momentum",
                   (fl_arg[]){{"learning_rate", .n = 1, .var = rate},
                              {"momentum", .f = 0.9},
                              {0}});
    scene_cut2(s);
}

static void schedules_are_the_servers(void)
{
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        scene s;
        make_scheduled(&s, schedules[i].name, schedules[i].args);
        const fl_program *p = s.cut->server[0];
        const int inner = schedules[i].inner;
        CHECK_STR(scene_trainer(&s), TRAINER);
        CHECK_INT(p->blocks.n, 4 + inner);
        if (schedules[i].ops)
            CHECK_STR(scene_types(&s, p, 1), schedules[i].ops);
        else /* all of them, which the step counter begins */
            CHECK(fl_starts_with(scene_types(&s, p, 1), "increment cast"));
        CHECK_INT(p->blocks.at[1]->parent, 0);
        for (int k = 2; k < 2 + inner; k++) {
            CHECK_STR(scene_types(&s, p, k), "assign");
            CHECK_INT(p->blocks.at[k]->parent, 1);
        }
        for (int k = 2 + inner; k < 4 + inner; k++) {
            CHECK_STR(scene_types(&s, p, k), "sum scale momentum");
            CHECK_INT(p->blocks.at[k]->parent, 1 + inner);
        }
        CHECK(strstr(scene_starts(&s, s.cut->server_startup[0]),
                     "fill_constant @LR_DECAY_COUNTER@"));
        scene_end(&s);
    }
}

static void a_warmup_goes_along(void)
{
    scene s;
    scene_fc(&s);
    fl_var *slow = test_layer(s.net, "exponential_decay", schedules[0].args);
    fl_var *rate = TEST_LAYER(
        s.net, "linear_lr_warmup", {"learning_rate", .n = 1, .var = slow},
        {"warmup_steps", .i = 5}, {"start_lr", .f = 0.0}, {"end_lr", .f = 1.0});
    scene_minimize(&s, "sgd",
                   (fl_arg[]){{"learning_rate", .n = 1, .var = rate}, {0}});
    scene_cut2(&s);
    CHECK_STR(scene_trainer(&s), TRAINER);
    CHECK(strstr(scene_types(&s, s.cut->server[0], 1), "conditional_block"));
    scene_end(&s);
}

/* A parameter's own factor is part of the rates, on every server. */
static void own_rates_are_the_servers(void)
{
    scene s;
    scene_begin(&s);
    scene_line(&s, 13, 1, &(fl_param_attr){.name = "w", .learning_rate = 0.1f},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_blocks(&s, 1),
              "1/0: fill_constant elementwise_mul\n2/1: sum scale sgd\n");
    CHECK_STR(scene_blocks(&s, 0),
              "1/0: fill_constant elementwise_mul\n2/1: sum scale sgd\n");
    scene_end(&s);
}

const fl_test fl_tests[] = {
    {"a cut of fit a line is this text for trainers", fit_a_line_for_trainers},
    {"a cut of fit a line is this text for a server", fit_a_line_for_a_server},
    {"a cut leaves alone what it cuts", leaves_what_it_cuts_alone},
    {"a cut has every optimizer on the servers", cuts_every_optimizer},
    {"a cut splits each parameter whose rule works by element", splits_by_rule},
    {"a cut has adadelta on the servers too", cuts_adadelta_too},
    {"a cut with momentum has Fluid's variables",
     momentum_has_fluids_variables},
    {"a cut keeps whole what needs a norm", keeps_whole_what_needs_a_norm},
    {"a cut leaves decay to the servers", decay_is_the_servers},
    {"a cut clips by value on the servers", clips_by_value_on_servers},
    {"a cut clips by norm on one server", clips_by_norm_on_one_server},
    {"a cut clips by global norm on the trainers",
     clips_by_global_norm_on_trainers},
    {"a cut leaves schedules to the servers", schedules_are_the_servers},
    {"a cut takes a warmup along", a_warmup_goes_along},
    {"a cut leaves parameters' own rates to the servers",
     own_rates_are_the_servers},
    {0},
};
