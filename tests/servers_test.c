/* SPDX-License-Identifier: Apache-2.0 */
/* The click model with two servers and a trainer, each in a process of its own:
 * what a step allocates and prepares, and that fusion changes nothing. The
 * processes are forked from one that never uses the network. */
#include "base/mem.h"
#include "click.h"
#include "op/frame.h"
#include "process.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    WARM = 2,
    STEPS = 20,
    MORE = 60, /* the steps of a second job: what both do once is left out */
    TURNS = 3
};

typedef struct how {
    bool async, is_distributed, no_fuse;
    int steps;
} how;

/* What the processes of a job have cost, and learnt. They share its memory. */
typedef struct result {
    double allocations; /* of a step, on the trainer's thread */
    double all;         /* of a step, on all threads of the trainer */
    int64_t preparations;
    uint64_t server[ENDPOINTS]; /* allocations of the server's whole life */
    uint64_t server_prepared[ENDPOINTS];
    float losses[MORE];
} result;

static void begin_process(process *p, const how *h, const endpoints *at,
                          const char *endpoint)
{
    init_process(p, endpoint, h->no_fuse);
    fl_net_seed(p->net, 1);
    p->loss = click_net_of(p->net, h->is_distributed);
    CHECK_OK(fl_minimize(p->net, p->loss, "sgd",
                         (fl_arg[]){{"learning_rate", .f = 0.05}, {0}}));
    transpile_process(
        p, &(fl_transpile_opts){.pservers = at->list,
                                .trainers = 1,
                                .async = h->async,
                                .runtime_split_send_recv = h->async});
}

/* Thread and process of its own: a failed CHECK could not leave it. */
static void must(fl_err err)
{
    if (!err)
        return;
    fprintf(stderr, "%s\n", fl_errmsg());
    _exit(1);
}

static void serve(const how *h, const endpoints *at, int i, result *r)
{
    process p;
    begin_process(&p, h, at, at->endpoint[i]);
    must(serve_job(&p));
    r->server[i] = fl_mem_count_all();
    r->server_prepared[i] = fl_frame_prepared();
    fini_process(&p);
}

static void train(const how *h, const endpoints *at, result *r)
{
    process p;
    begin_process(&p, h, at, NULL);
    fl_fetch loss = {fl_var_name(p.loss), {0}};
    const fl_program *main = fl_cut_trainer(p.cut);
    uint64_t own = 0, all = 0, prepared = 0;
    if (h->async)
        must(fl_communicator_start(p.engine, main));
    must(run_program(&p, fl_cut_trainer_startup(p.cut)));
    for (int i = 0; i < h->steps; i++) {
        batch b = {0};
        make_batch(&b, 2 * i); /* all of one shape */
        if (i == WARM) {
            own = fl_mem_count();
            all = fl_mem_count_all();
            prepared = fl_frame_prepared();
        }
        must(fl_exe_run(p.exe, main, p.scope, SLOTS + 2, b.feeds, 1, &loss));
        r->losses[i] = *(float *)loss.tensor.data;
    }
    const double counted = h->steps - WARM;
    r->allocations = (double)(fl_mem_count() - own) / counted;
    r->all = (double)(fl_mem_count_all() - all) / counted;
    r->preparations = (int64_t)(fl_frame_prepared() - prepared);
    fl_tensor_fini(&loss.tensor);
    must(fl_engine_leave(p.engine, 0, NULL, NULL));
    fini_process(&p);
}

/* Start a server, or if i is ENDPOINTS the trainer. */
static pid_t start_party(const how *h, const endpoints *at, int i, result *r)
{
    const pid_t pid = fork();
    if (pid)
        return pid;
    if (i < ENDPOINTS)
        serve(h, at, i, r);
    else
        train(h, at, r);
    _exit(0);
}

static void run_job(const how *h, result *r)
{
    endpoints at;
    pid_t pid[ENDPOINTS + 1];
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    result *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    setenv("FLUID_LINGER", "0.1", 1);
    find_ports(ENDPOINTS, &at);
    fflush(NULL);
    for (int i = 0; i <= ENDPOINTS; i++)
        pid[i] = start_party(h, &at, i, shared);
    for (int i = 0; i <= ENDPOINTS; i++) {
        int status;
        CHECK(waitpid(pid[i], &status, 0) == pid[i]);
        CHECK_INT(status, 0);
    }
    *r = *shared;
    munmap(shared, sizeof *shared);
}

/* The most allocations of a step. */
typedef struct limits {
    double own;    /* on the trainer's thread */
    double all;    /* on all threads of the trainer */
    double server; /* on all threads of a server */
} limits;

/* What more steps cost more. */
static double server_step(int i, const result *few, const result *many)
{
    return ((double)many->server[i] - (double)few->server[i]) /
           (double)(MORE - STEPS);
}

static void check_server(const how *h, int i, const result *few,
                         const result *many, double most)
{
    print_message("    server %d: %.1f\n", i, server_step(i, few, many));
    CHECK(server_step(i, few, many) <= most);
    if (!h->async) /* else the number of rows depends on who is fast */
        CHECK(many->server_prepared[i] == few->server_prepared[i]);
}

/* Run a job of few steps and one of many. Servers also allocate for what they
 * repeat while they wait for each other, so on a slow machine a turn of both
 * may say nothing about a step. */
static void run_turns(how *h, const limits *most, result *few, result *many)
{
    bool steady = false;
    for (int turn = 0; turn < TURNS && !steady; turn++) {
        h->steps = STEPS;
        run_job(h, few);
        h->steps = MORE;
        run_job(h, many);
        steady = true;
        for (int i = 0; i < ENDPOINTS; i++)
            steady = steady && server_step(i, few, many) <= most->server;
    }
}

/* From the third step on. */
static void check_steady(how h, limits most)
{
    result few, many;
    run_turns(&h, &most, &few, &many);
    print_message("%s%s: allocations of a step: %.1f, on all threads %.1f\n",
                  h.async ? "async" : "sync",
                  h.is_distributed ? ", table by id" : "", many.allocations,
                  many.all);
    CHECK(many.allocations <= most.own);
    CHECK(many.all <= most.all);
    CHECK_INT(many.preparations, 0);
    for (int i = 0; i < ENDPOINTS; i++)
        check_server(&h, i, &few, &many, most.server);
}

/* A server serves a push and two pulls in a step, and closes a round; the first
 * is also the coordinator. */
static void a_synchronous_step_is_steady(void)
{
    check_steady((how){0}, (limits){16, 30, 30});
    check_steady((how){.is_distributed = true}, (limits){16, 30, 30});
}

/* Eight steps share a push and a pull, if the sender keeps up. */
static void an_asynchronous_step_is_steady(void)
{
    check_steady((how){.async = true}, (limits){15, 25, 20});
    check_steady((how){.async = true, .is_distributed = true},
                 (limits){15, 30, 20});
}

static void fusion_changes_nothing(void)
{
    for (int i = 0; i < 2; i++) {
        result fused, plain;
        how h = {.is_distributed = i, .steps = STEPS};
        run_job(&h, &fused);
        h.no_fuse = true;
        run_job(&h, &plain);
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
