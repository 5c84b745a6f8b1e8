/* SPDX-License-Identifier: Apache-2.0 */
/* A whole job in one process: servers and trainers with nothing in common but
 * the network, each with an engine of its own; fluid.h alone. What they learn
 * is what one learns alone, to the last bit. */
#include "base/pool.h"
#include "process.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 6,
    ROWS = 4,
    WIDTH = 120,
    OUT = 80,   /* 9600 numbers: they are cut */
    MEMBERS = 2 /* servers, or trainers, at most */
};

typedef struct scene {
    endpoints at;
    int n_servers, trainers;
    bool async;
} scene;

/* One process of the job, or one that is alone, and what it has learnt. */
typedef struct member {
    process of;
    float losses[STEPS];
    char why[256]; /* the error; "": none */
} member;

static void build(process *p, const char *endpoint)
{
    const fl_init start = {.kind = "uniform", .a = -1, .b = 1, .seed = 3};
    const fl_param_attr attr = {.init = &start};
    const int64_t width = WIDTH, out = OUT;
    init_process(p, endpoint, true);
    fl_net *n = p->net;
    fl_var *x = FL_LAYER(n, "data", {"name", .s = "x"},
                         {"shape", .n = 1, .ints = &width});
    fl_var *y = FL_LAYER(n, "data", {"name", .s = "y"},
                         {"shape", .n = 1, .ints = &out});
    fl_var *predict =
        FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = OUT},
                 {"param_attr", .attr = &attr}, {"bias_attr", .attr = &attr});
    fl_var *cost = FL_LAYER(n, "square_error_cost", {"input", .var = predict},
                            {"label", .var = y});
    p->loss = FL_LAYER(n, "mean", {"x", .var = cost});
    CHECK_OK(fl_minimize(n, p->loss, "momentum",
                         (const fl_arg[]){{"learning_rate", .f = 0.1},
                                          {"momentum", .f = 0.9},
                                          {0}}));
}

static void join(member *m, const scene *s, const char *endpoint, int rank)
{
    build(&m->of, endpoint);
    transpile_process(&m->of, &(fl_transpile_opts){.pservers = s->at.list,
                                                   .trainers = s->trainers,
                                                   .trainer_id = rank,
                                                   .async = s->async});
}

/* The same batch for every trainer. */
static fl_err take_step(member *m, const fl_program *program, int step)
{
    process *p = &m->of;
    float x[ROWS * WIDTH], y[ROWS * OUT];
    fl_fetch loss = {fl_var_name(p->loss), {0}};
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)((i * 7 + step * 13) % 17) / 17 - 0.5f;
    for (int i = 0; i < ROWS * OUT; i++)
        y[i] = (float)(i % 5);
    const fl_feed feeds[] = {
        {"x", fl_tensor_view(FL_F32, &(fl_shape){2, {ROWS, WIDTH}}, x)},
        {"y", fl_tensor_view(FL_F32, &(fl_shape){2, {ROWS, OUT}}, y)},
    };
    const fl_err err =
        fl_exe_run(p->exe, program, p->scope, 2, feeds, 1, &loss);
    if (!err)
        m->losses[step] = *(float *)loss.tensor.data;
    fl_tensor_fini(&loss.tensor);
    return err;
}

static fl_err train(member *m, const fl_program *startup,
                    const fl_program *main)
{
    FL_TRY(run_program(&m->of, startup));
    for (int i = 0; i < STEPS; i++)
        FL_TRY(take_step(m, main, i));
    return FL_OK;
}

static fl_err train_in_job(member *m)
{
    const fl_cut *cut = m->of.cut;
    FL_TRY(train(m, fl_cut_trainer_startup(cut), fl_cut_trainer(cut)));
    return fl_engine_leave(m->of.engine, 0, NULL, NULL);
}

static void run_member(void *self)
{
    member *m = self;
    if (m->of.endpoint ? serve_job(&m->of) : train_in_job(m))
        snprintf(m->why, sizeof m->why, "%s", fl_errmsg());
}

static void learn_alone(float losses[STEPS])
{
    member m = {0};
    build(&m.of, NULL);
    CHECK_OK(train(&m, fl_net_startup(m.of.net), fl_net_main(m.of.net)));
    memcpy(losses, m.losses, sizeof m.losses);
    fini_process(&m.of);
}

static void learns_as_one(int servers, int trainers, bool async)
{
    scene s = {.n_servers = servers, .trainers = trainers, .async = async};
    member server[MEMBERS] = {0}, trainer[MEMBERS] = {0};
    float alone[STEPS];
    fl_group group = {0};
    fl_pool *pool;
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    setenv("FLUID_LINGER", "0.1", 1);
    find_ports(s.n_servers, &s.at);
    CHECK_OK(fl_pool_new("member", 2 * MEMBERS, &pool));
    for (int i = 0; i < trainers; i++) { /* they wait for the servers */
        join(&trainer[i], &s, NULL, i);
        fl_pool_submit(pool, &group, run_member, &trainer[i]);
    }
    for (int i = 0; i < servers; i++) {
        join(&server[i], &s, s.at.endpoint[i], 0);
        fl_pool_submit(pool, &group, run_member, &server[i]);
    }
    learn_alone(alone);
    fl_pool_free(pool); /* until all are done */
    for (int i = 0; i < servers; i++) {
        CHECK_STR(server[i].why, "");
        fini_process(&server[i].of);
    }
    for (int i = 0; i < trainers; i++) {
        CHECK_STR(trainer[i].why, "");
        for (int k = 0; k < STEPS; k++)
            CHECK_NEAR(trainer[i].losses[k], alone[k], 0);
        fini_process(&trainer[i].of);
    }
}

static void one_and_one(void)
{
    learns_as_one(1, 1, false);
}

static void two_and_two(void)
{
    learns_as_one(2, 2, false);
}

static void two_and_one_apart(void)
{
    learns_as_one(2, 1, true);
}

const fl_test fl_tests[] = {
    {"a server and a trainer learn as one", one_and_one},
    {"two servers and two trainers learn as one", two_and_two},
    {"a trainer without barriers learns as one", two_and_one_apart},
    {0},
};
