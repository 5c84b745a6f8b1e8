/* SPDX-License-Identifier: Apache-2.0 */
/* A whole job in one process: servers and trainers with nothing in common but
 * the network, each with an engine of its own; fluid.h alone. What they learn
 * is what one learns alone, to the last bit. */
#include "base/pool.h"
#include "endpoints.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 6,
    ROWS = 4,
    WIDTH = 120,
    OUT = 80, /* 9600 numbers: they are cut */
    PARTS = 2
};

typedef struct scene {
    endpoints at;
    int n_servers, trainers;
    bool async;
} scene;

/* One process of the job, or one that is alone. */
typedef struct part {
    const scene *s;
    int index;
    bool serves;
    fl_engine *engine;
    fl_net *net;
    fl_var *loss;
    fl_cut *cut;
    fl_exe *exe;
    fl_scope *scope;
    float losses[STEPS];
    fl_err err;
    char why[256];
} part;

static void build(part *p)
{
    const fl_init start = {.kind = "uniform", .a = -1, .b = 1, .seed = 3};
    const fl_param_attr attr = {.init = &start};
    const int64_t width = WIDTH, out = OUT;
    p->engine = fl_engine_new();
    fl_net *n = p->net = fl_net_new(p->engine);
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
    p->exe = fl_exe_new(p->engine, &(fl_exe_opts){.no_fuse = true});
    p->scope = fl_scope_new();
}

static void join(part *p)
{
    const fl_transpile_opts opts = {.pservers = p->s->at.list,
                                    .trainers = p->s->trainers,
                                    .trainer_id = p->serves ? 0 : p->index,
                                    .async = p->s->async};
    build(p);
    CHECK_OK(fl_transpile(fl_net_main(p->net), fl_net_startup(p->net), &opts,
                          &p->cut));
}

static void end(part *p)
{
    fl_exe_free(p->exe);
    fl_scope_free(p->scope);
    fl_cut_free(p->cut);
    fl_net_free(p->net);
    fl_engine_free(p->engine); /* completes */
}

/* The same batch for every trainer. */
static fl_err take_step(part *p, const fl_program *program, int step)
{
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
        p->losses[step] = *(float *)loss.tensor.data;
    fl_tensor_fini(&loss.tensor);
    return err;
}

static fl_err train(part *p, const fl_program *startup, const fl_program *main)
{
    fl_err err = fl_exe_run(p->exe, startup, p->scope, 0, NULL, 0, NULL);
    for (int i = 0; i < STEPS && !err; i++)
        err = take_step(p, main, i);
    return err;
}

static fl_err serve(part *p)
{
    fl_program *main, *startup;
    fl_err err =
        fl_cut_server(p->cut, p->s->at.endpoint[p->index], &main, &startup);
    if (!err)
        err = fl_exe_run(p->exe, startup, p->scope, 0, NULL, 0, NULL);
    return err ? err : fl_exe_run(p->exe, main, p->scope, 0, NULL, 0, NULL);
}

static void tell(part *p, fl_err err)
{
    p->err = err;
    snprintf(p->why, sizeof p->why, "%s", fl_errmsg());
}

static void run_server(void *self)
{
    tell(self, serve(self));
}

static void run_trainer(void *self)
{
    part *p = self;
    fl_err err =
        train(p, fl_cut_trainer_startup(p->cut), fl_cut_trainer(p->cut));
    if (!err)
        err = fl_engine_leave(p->engine, 0, NULL, NULL);
    tell(p, err);
}

static void learn_alone(float losses[STEPS])
{
    part p = {0};
    build(&p);
    CHECK_OK(train(&p, fl_net_startup(p.net), fl_net_main(p.net)));
    memcpy(losses, p.losses, sizeof p.losses);
    end(&p);
}

static void learns_as_one(int servers, int trainers, bool async)
{
    scene s = {.n_servers = servers, .trainers = trainers, .async = async};
    part server[PARTS] = {{0}}, trainer[PARTS] = {{0}};
    float alone[STEPS];
    fl_group group = {0};
    fl_pool *pool;
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    setenv("FLUID_LINGER", "0.1", 1);
    find_ports(s.n_servers, &s.at);
    CHECK_OK(fl_pool_new("part", 2 * PARTS, &pool));
    for (int i = 0; i < trainers; i++) { /* they wait for the servers */
        trainer[i] = (part){.s = &s, .index = i};
        join(&trainer[i]);
        fl_pool_submit(pool, &group, run_trainer, &trainer[i]);
    }
    for (int i = 0; i < servers; i++) {
        server[i] = (part){.s = &s, .index = i, .serves = true};
        join(&server[i]);
        fl_pool_submit(pool, &group, run_server, &server[i]);
    }
    learn_alone(alone);
    fl_pool_free(pool); /* until all are done */
    for (int i = 0; i < servers; i++) {
        CHECK_STR(server[i].err ? server[i].why : "", "");
        end(&server[i]);
    }
    for (int i = 0; i < trainers; i++) {
        CHECK_STR(trainer[i].err ? trainer[i].why : "", "");
        for (int k = 0; k < STEPS; k++)
            CHECK_NEAR(trainer[i].losses[k], alone[k], 0);
        end(&trainer[i]);
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
