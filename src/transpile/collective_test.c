/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of ranks without servers, as texts. */
#include "transpile/test_transpile.h"

#define R2 "h0:1,h1:2"

typedef struct ranks {
    scene s;
    fl_program *main, *startup;
} ranks;

/* fit_a_line, minimized with SGD, in the given mode. */
static fl_err ranks_make(ranks *r, const fl_collective_opts *o)
{
    scene_begin(&r->s);
    scene_line(&r->s, 13, 1, NULL, NULL);
    scene_minimize(&r->s, "sgd", scene_rate);
    r->main = r->startup = NULL;
    const fl_err err = fl_collective(r->s.net->main, r->s.net->startup, o,
                                     &r->main, &r->startup);
    if (!err) {
        CHECK_OK(fl_program_verify(r->main));
        CHECK_OK(fl_program_verify(r->startup));
    }
    return err;
}

static void ranks_fini(ranks *r)
{
    fl_program_free(r->main);
    fl_program_free(r->startup);
    scene_end(&r->s);
}

#define FORWARD "mul elementwise_add elementwise_sub square mean fill_constant "
#define BACK    "mean_grad square_grad elementwise_sub_grad elementwise_add_grad "

static void nccl2_changes_only_the_startup_program(void)
{
    ranks r;
    CHECK_OK(ranks_make(
        &r,
        &(fl_collective_opts){.trainers = R2, .rank = 1, .endpoint = "h1:2"}));
    CHECK_STR(scene_brief(&r.s, r.main), scene_brief(&r.s, r.s.net->main));
    CHECK_STR(scene_types(&r.s, r.startup, 0),
              "fill_constant fill_constant uniform_random gen_nccl_id");
    CHECK_STR(scene_lines(&r.s, r.startup, "gen_nccl_id"),
              "gen_nccl_id() -> NCCLID=NCCLID {trainers=[\"h0:1\", \"h1:2\"], "
              "trainer_id=1}\n");
    CHECK_INT(fl_block_var(fl_program_block(r.startup, 0), "NCCLID")->kind,
              FL_RAW);
    ranks_fini(&r);
}

static void nccl2_declares_an_id_for_each_ring(void)
{
    ranks r;
    CHECK_OK(ranks_make(&r, &(fl_collective_opts){.trainers = R2,
                                                  .rings = 2,
                                                  .hierarchical = true,
                                                  .inter_nranks = 2}));
    CHECK_STR(scene_lines(&r.s, r.startup, "NCCLID"),
              "var NCCLID: raw persistable\n"
              "var NCCLID_1: raw persistable\n"
              "var Hierarchical_inter_NCCLID_0: raw persistable\n"
              "var Hierarchical_exter_NCCLID_0: raw persistable\n"
              "var Hierarchical_inter_NCCLID_1: raw persistable\n"
              "var Hierarchical_exter_NCCLID_1: raw persistable\n"
              "gen_nccl_id() -> NCCLID=NCCLID {trainers=[\"h0:1\", \"h1:2\"], "
              "nccl_comm_num=2, use_hierarchical_allreduce=true, "
              "hierarchical_allreduce_inter_nranks=2}\n");
    ranks_fini(&r);
}

static void gradients_are_reduced_in_the_order_of_backward(void)
{
    ranks r;
    CHECK_OK(ranks_make(
        &r, &(fl_collective_opts){.trainers = R2, .mode = "grad_allreduce"}));
    CHECK_STR(scene_types(&r.s, r.main, 0), FORWARD
              "scale " BACK "c_sync_calc_stream c_allreduce_sum mul_grad "
              "c_sync_calc_stream c_allreduce_sum c_sync_comm_stream "
              "c_sync_comm_stream sgd sgd");
    CHECK_STR(scene_lines(&r.s, r.main, "scale("),
              "scale(X=mean_0.tmp_0@GRAD) -> Out=mean_0.tmp_0@GRAD "
              "{op_role=1, scale=0.5}\n");
    CHECK_STR(scene_lines(&r.s, r.main, " c_"),
              "c_sync_calc_stream(X=fc_0.b_0@GRAD) -> Out=fc_0.b_0@GRAD "
              "{op_role=1}\n"
              "c_allreduce_sum(X=fc_0.b_0@GRAD) -> Out=fc_0.b_0@GRAD "
              "{op_role=1}\n"
              "c_sync_calc_stream(X=fc_0.w_0@GRAD) -> Out=fc_0.w_0@GRAD "
              "{op_role=1}\n"
              "c_allreduce_sum(X=fc_0.w_0@GRAD) -> Out=fc_0.w_0@GRAD "
              "{op_role=1, ring_id=1}\n"
              "c_sync_comm_stream(X=fc_0.w_0@GRAD) -> Out=fc_0.w_0@GRAD "
              "{op_role=1}\n"
              "c_sync_comm_stream(X=fc_0.w_0@GRAD) -> Out=fc_0.w_0@GRAD "
              "{op_role=1, ring_id=1}\n");
    ranks_fini(&r);
}

static void rings_are_joined_and_parameters_sent_at_the_start(void)
{
    ranks r;
    CHECK_OK(ranks_make(&r, &(fl_collective_opts){.trainers = R2 ",h2:3",
                                                  .rank = 1,
                                                  .mode = "grad_allreduce"}));
    CHECK_STR(scene_lines(&r.s, r.startup, " c_"),
              "c_gen_nccl_id() -> Out=nccl_id_0 {rank=1, endpoint=\"h1:2\", "
              "other_endpoints=[\"h0:1\", \"h2:3\"]}\n"
              "c_comm_init(X=nccl_id_0) {nranks=3, rank=1}\n"
              "c_gen_nccl_id() -> Out=nccl_id_1 {rank=1, endpoint=\"h1:2\", "
              "other_endpoints=[\"h0:1\", \"h2:3\"]}\n"
              "c_comm_init(X=nccl_id_1) {nranks=3, rank=1, ring_id=1}\n"
              "c_broadcast(X=fc_0.w_0) -> Out=fc_0.w_0\n"
              "c_broadcast(X=fc_0.b_0) -> Out=fc_0.b_0 {ring_id=1}\n"
              "c_sync_comm_stream(X=fc_0.b_0) -> Out=fc_0.b_0\n"
              "c_sync_comm_stream(X=fc_0.b_0) -> Out=fc_0.b_0 {ring_id=1}\n");
    ranks_fini(&r);
}

static void local_sgd_averages_what_was_changed(void)
{
    ranks r;
    CHECK_OK(ranks_make(&r, &(fl_collective_opts){.trainers = R2,
                                                  .mode = "local_sgd",
                                                  .rings = 1}));
    CHECK_STR(scene_types(&r.s, r.main, 0), FORWARD BACK
              "mul_grad sgd elementwise_sub c_sync_calc_stream "
              "c_allreduce_sum sgd elementwise_sub c_sync_calc_stream "
              "c_allreduce_sum c_sync_comm_stream scale elementwise_sub assign "
              "scale elementwise_sub assign");
    CHECK_STR(scene_lines(&r.s, r.main, "fc_0.b_0@SNAPSHOT"),
              "var fc_0.b_0@SNAPSHOT: f32[1] persistable stop_gradient\n"
              "elementwise_sub(X=fc_0.b_0@SNAPSHOT, Y=fc_0.b_0) -> "
              "Out=fc_0.b_0 {op_role=2}\n"
              "elementwise_sub(X=fc_0.b_0@SNAPSHOT, Y=fc_0.b_0) -> "
              "Out=fc_0.b_0 {op_role=2}\n"
              "assign(X=fc_0.b_0) -> Out=fc_0.b_0@SNAPSHOT {op_role=2}\n");
    CHECK_STR(scene_lines(&r.s, r.startup, "assign"),
              "assign(X=fc_0.b_0) -> Out=fc_0.b_0@SNAPSHOT\n"
              "assign(X=fc_0.w_0) -> Out=fc_0.w_0@SNAPSHOT\n");
    ranks_fini(&r);
}

/* Clipping by the norm of all gradients, a rate that decays. */
static void the_first_update_waits_for_all_gradients(void)
{
    scene s;
    fl_program *out;
    const fl_clip clip = {.kind = "global_norm", .max = 1};
    scene_begin(&s);
    scene_line(&s, 4, 1, &(fl_param_attr){.clip = &clip},
               &(fl_param_attr){.clip = &clip});
    fl_var *rate =
        TEST_LAYER(s.net, "exponential_decay", {"learning_rate", .f = 0.1},
                   {"decay_steps", .i = 2}, {"decay_rate", .f = 0.5});
    scene_minimize(
        &s, "sgd",
        (const fl_arg[]){{"learning_rate", .n = 1, .var = rate}, {0}});
    CHECK_OK(fl_collective_grads(s.net->main, 4, FL_GRAD_MEAN, &out));
    CHECK_OK(fl_program_verify(out));
    const char *types = scene_types(&s, out, 0);
    const char *sync = strstr(types, "c_sync_comm_stream");
    CHECK(sync);
    CHECK(!strstr(sync, "_grad") && strstr(sync, "sqrt"));
    CHECK(!strstr(sync, " c_"));
    CHECK_STR(scene_lines(&s, out, "scale=0.25"),
              "scale(X=mean_0.tmp_0@GRAD) -> Out=mean_0.tmp_0@GRAD "
              "{op_role=1, scale=0.25}\n");
    fl_program_free(out);
    CHECK_OK(fl_collective_grads(s.net->main, 4, FL_GRAD_SUM, &out));
    CHECK_STR(scene_lines(&s, out, "scale=0.25"), "");
    fl_program_free(out);
    scene_end(&s);
}

static void a_program_without_gradients_stays_as_it_is(void)
{
    scene s;
    fl_program *out, *startup;
    scene_fc(&s);
    CHECK_OK(fl_collective_grads(s.net->main, 2, FL_GRAD_MEAN, &out));
    CHECK(!out);
    const char *const modes[] = {"grad_allreduce", "local_sgd"};
    for (int i = 0; i < 2; i++)
        CHECK_ERR(fl_collective(
                      s.net->main, s.net->startup,
                      &(fl_collective_opts){.trainers = R2, .mode = modes[i]},
                      &out, &startup),
                  FL_EINVAL,
                  "transpile: the program has no gradients of parameters; "
                  "call minimize first");
    scene_end(&s);
}

/* Parameters, their states and the rate; not what a run makes by itself. */
static void all_that_is_kept_comes_from_rank_0(void)
{
    scene s;
    fl_program *out;
    scene_begin(&s);
    scene_line(&s, 4, 1, NULL, NULL);
    scene_minimize(&s, "momentum",
                   (const fl_arg[]){{"learning_rate", .f = 0.5},
                                    {"momentum", .f = 0.9},
                                    {0}});
    s.loss->persistable = true;
    CHECK_OK(fl_collective_broadcast(s.net->main, &out));
    CHECK_OK(fl_program_verify(out));
    CHECK_STR(scene_lines(&s, out, " c_"),
              "c_broadcast(X=fc_0.w_0) -> Out=fc_0.w_0\n"
              "c_broadcast(X=fc_0.b_0) -> Out=fc_0.b_0\n"
              "c_broadcast(X=fc_0.b_0_velocity_0) -> Out=fc_0.b_0_velocity_0\n"
              "c_broadcast(X=learning_rate_0) -> Out=learning_rate_0\n"
              "c_broadcast(X=fc_0.w_0_velocity_0) -> Out=fc_0.w_0_velocity_0\n"
              "c_sync_comm_stream(X=fc_0.w_0) -> Out=fc_0.w_0\n");
    fl_program_free(out);
    scene_end(&s);
}

static void wrong_options_are_named(void)
{
    const struct {
        fl_collective_opts o;
        const char *says;
    } cases[] = {
        {{.trainers = ""}, "trainers is empty, expected host:port,host:port"},
        {{0}, "trainers is empty"},
        {{.trainers = "h:1,h"}, "trainer \"h\" has no port"},
        {{.trainers = "h:1, h:1"}, "trainer h:1 is listed twice"},
        {{.trainers = R2, .rank = 2},
         "trainer_id is 2, but trainers names 2: ids go from 0 to 1"},
        {{.trainers = R2, .rank = -1}, "trainer_id is -1"},
        {{.trainers = R2, .endpoint = "h1:2"},
         "trainer_id 0 is h0:1, but current_endpoint is h1:2"},
        {{.trainers = R2, .rings = 65},
         "65 rings are asked for, expected 1 to 64"},
        {{.trainers = R2, .mode = "ring"},
         "mode is \"ring\", expected \"nccl2\", \"grad_allreduce\" or"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ranks r;
        CHECK_INT(ranks_make(&r, &cases[i].o), FL_EINVAL);
        if (!strstr(fl_errmsg(), cases[i].says))
            CHECK_STR(fl_errmsg(), cases[i].says);
        ranks_fini(&r);
    }
}

const fl_test fl_tests[] = {
    {"nccl2 mode changes only the startup program",
     nccl2_changes_only_the_startup_program},
    {"nccl2 mode declares an id for each ring",
     nccl2_declares_an_id_for_each_ring},
    {"gradients are reduced in the order of backward",
     gradients_are_reduced_in_the_order_of_backward},
    {"rings are joined and parameters sent at the start",
     rings_are_joined_and_parameters_sent_at_the_start},
    {"local SGD averages what was changed",
     local_sgd_averages_what_was_changed},
    {"the first update waits for all gradients",
     the_first_update_waits_for_all_gradients},
    {"a program without gradients stays as it is",
     a_program_without_gradients_stays_as_it_is},
    {"all that is kept from run to run comes from rank 0",
     all_that_is_kept_comes_from_rank_0},
    {"wrong options are named", wrong_options_are_named},
    {0},
};
