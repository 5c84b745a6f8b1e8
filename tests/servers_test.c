/* SPDX-License-Identifier: Apache-2.0 */
/* The click model with two servers and a trainer in one process: what a step
 * allocates and prepares, and that fusion changes nothing. */
#include "base/mem.h"
#include "base/pool.h"
#include "click.h"
#include "endpoints.h"
#include "op/frame.h"

#include <stdlib.h>

enum {
    WARM = 2,
    STEPS = 20
};

typedef struct how {
    bool async, is_distributed, no_fuse;
} how;

typedef struct part {
    fl_engine *engine;
    fl_net *net;
    fl_var *loss;
    fl_cut *cut;
    fl_exe *exe;
    fl_scope *scope;
    const char *endpoint; /* NULL: the trainer */
} part;

/* What the trainer's steps have cost, and learnt. */
typedef struct result {
    double allocations; /* of a step, on the trainer's thread */
    int64_t preparations;
    float losses[STEPS];
} result;

static void begin(part *p, const how *h, const endpoints *at,
                  const char *endpoint)
{
    const fl_transpile_opts opts = {.pservers = at->list,
                                    .trainers = 1,
                                    .async = h->async,
                                    .runtime_split_send_recv = h->async};
    *p = (part){.engine = fl_engine_new(), .endpoint = endpoint};
    p->net = fl_net_new(p->engine);
    fl_net_seed(p->net, 1);
    p->loss = click_net_of(p->net, h->is_distributed);
    CHECK_OK(fl_minimize(p->net, p->loss, "sgd",
                         (fl_arg[]){{"learning_rate", .f = 0.05}, {0}}));
    CHECK_OK(fl_transpile(fl_net_main(p->net), fl_net_startup(p->net), &opts,
                          &p->cut));
    p->exe = fl_exe_new(p->engine, &(fl_exe_opts){.no_fuse = h->no_fuse});
    p->scope = fl_scope_new();
}

static void end(part *p)
{
    fl_exe_free(p->exe);
    fl_scope_free(p->scope);
    fl_cut_free(p->cut);
    fl_net_free(p->net);
    fl_engine_free(p->engine);
}

static void run(part *p, const fl_program *program)
{
    CHECK_OK(fl_exe_run(p->exe, program, p->scope, 0, NULL, 0, NULL));
}

static void serve(void *self)
{
    part *p = self;
    fl_program *main, *startup;
    CHECK_OK(fl_cut_server(p->cut, p->endpoint, &main, &startup));
    run(p, startup);
    run(p, main);
}

static void train(part *p, const how *h, result *r)
{
    fl_fetch loss = {fl_var_name(p->loss), {0}};
    const fl_program *main = fl_cut_trainer(p->cut);
    uint64_t allocated = 0, prepared = 0;
    if (h->async)
        CHECK_OK(fl_communicator_start(p->engine, main));
    run(p, fl_cut_trainer_startup(p->cut));
    for (int i = 0; i < STEPS; i++) {
        batch b = {0};
        make_batch(&b, 2 * i); /* all of one shape */
        if (i == WARM) {
            allocated = fl_mem_count();
            prepared = fl_frame_prepared();
        }
        CHECK_OK(
            fl_exe_run(p->exe, main, p->scope, SLOTS + 2, b.feeds, 1, &loss));
        r->losses[i] = *(float *)loss.tensor.data;
    }
    r->allocations =
        (double)(fl_mem_count() - allocated) / (double)(STEPS - WARM);
    r->preparations = (int64_t)(fl_frame_prepared() - prepared);
    fl_tensor_fini(&loss.tensor);
    CHECK_OK(fl_engine_leave(p->engine, 0, NULL, NULL));
}

static void run_job(const how *h, result *r)
{
    endpoints at;
    part server[ENDPOINTS], trainer;
    fl_group group = {0};
    fl_pool *pool;
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    setenv("FLUID_LINGER", "0.1", 1);
    find_ports(ENDPOINTS, &at);
    CHECK_OK(fl_pool_new("server", ENDPOINTS, &pool));
    for (int i = 0; i < ENDPOINTS; i++) {
        begin(&server[i], h, &at, at.endpoint[i]);
        fl_pool_submit(pool, &group, serve, &server[i]);
    }
    begin(&trainer, h, &at, NULL);
    train(&trainer, h, r);
    fl_pool_free(pool);
    end(&trainer);
    for (int i = 0; i < ENDPOINTS; i++)
        end(&server[i]);
}

static void check_steady(const how *h, double most)
{
    result r;
    run_job(h, &r);
    print_message("%s%s: %.1f allocations a step, %lld preparations\n",
                  h->async ? "async" : "sync",
                  h->is_distributed ? ", table by id" : "", r.allocations,
                  (long long)r.preparations);
    CHECK(r.allocations <= most);
    CHECK_INT(r.preparations, 0);
}

static void a_synchronous_step_is_steady(void)
{
    check_steady(&(how){0}, 45);
    check_steady(&(how){.is_distributed = true}, 50);
}

static void an_asynchronous_step_is_steady(void)
{
    check_steady(&(how){.async = true}, 30);
    check_steady(&(how){.async = true, .is_distributed = true}, 30);
}

static void fusion_changes_nothing(void)
{
    for (int i = 0; i < 2; i++) {
        result fused, plain;
        run_job(&(how){.is_distributed = i}, &fused);
        run_job(&(how){.is_distributed = i, .no_fuse = true}, &plain);
        for (int k = 0; k < STEPS; k++)
            CHECK_NEAR(fused.losses[k], plain.losses[k], 1e-6);
    }
}

const fl_test fl_tests[] = {
    {"a synchronous step allocates little and prepares nothing",
     a_synchronous_step_is_steady},
    {"an asynchronous step allocates little and prepares nothing",
     an_asynchronous_step_is_steady},
    {"a fused step with servers learns what a plain one does",
     fusion_changes_nothing},
    {0},
};
