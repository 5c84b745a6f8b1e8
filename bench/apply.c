/* SPDX-License-Identifier: Apache-2.0 */
/* apply.c - bytes a second of gradients that a server takes and applies.
 *
 *     apply SECONDS
 *
 * A server process with SGD, asynchronous, and a client that speaks the
 * protocol itself: pushes of 100 KB and 1 MB, 4 in flight, each to a parameter
 * of its own. A push is answered when it is applied. One core each. One line of
 * JSON; CPU is that of both, in seconds a gigabyte. */
#include "bench.h"

#include "base/vec.h"
#include "cluster/placement.h"
#include "graph/program.h"
#include "net/rpc.h"
#include "wire/codec.h"

#include <pthread.h>

enum {
    FLIGHT = 4,
};

typedef struct size {
    const char *name;
    int64_t rows, columns;
} size;

static const size sizes[] = {{"100K", 100, 250}, {"1M", 512, 512}};

/* --- the programs, the same on both sides --- */

typedef struct model {
    fl_engine *engine;
    fl_net *net;
    fl_cut *cut;
} model;

static fl_var *matrix(fl_net *n, fl_var *x, const size *s, int i)
{
    char name[8];
    snprintf(name, sizeof name, "w%d", i);
    fl_param_attr attr = {.name = name};
    return FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = s->columns},
                    {"param_attr", .attr = &attr}, {"bias_attr", .b = false});
}

static model build(const size *s, const char *endpoint)
{
    model m = {.engine = fl_engine_new()};
    fl_var *y[FLIGHT];
    m.net = fl_net_new(m.engine);
    fl_net_seed(m.net, 1);
    fl_var *x =
        FL_LAYER(m.net, "data", {"name", .s = "x"}, {"shape", .i = s->rows});
    for (int i = 0; i < FLIGHT; i++)
        y[i] = matrix(m.net, x, s, i);
    fl_var *sum = FL_LAYER(m.net, "sum", {"x", .n = FLIGHT, .vars = y});
    fl_var *loss = FL_LAYER(m.net, "mean", {"x", .var = sum});
    must(loss && !fl_minimize(m.net, loss, "sgd",
                              (fl_arg[]){{"learning_rate", .f = 0.01}, {0}}),
         "the network");
    must(!fl_transpile(fl_net_main(m.net), fl_net_startup(m.net),
                       &(fl_transpile_opts){.pservers = endpoint,
                                            .async = true,
                                            .no_slices = true},
                       &m.cut),
         "transpile");
    return m;
}

static void model_free(model *m)
{
    fl_cut_free(m->cut);
    fl_net_free(m->net);
    fl_engine_free(m->engine);
}

static int serve(const size *s, const char *endpoint)
{
    fl_program *program, *startup;
    model m = build(s, endpoint);
    fl_scope *scope = fl_scope_new();
    fl_exe *exe = fl_exe_new(m.engine, NULL);
    pin(1);
    must(!fl_cut_server(m.cut, endpoint, &program, &startup) &&
             !fl_exe_run(exe, startup, scope, 0, NULL, 0, NULL) &&
             !fl_exe_run(exe, program, scope, 0, NULL, 0, NULL),
         endpoint);
    fl_exe_free(exe);
    fl_scope_free(scope);
    model_free(&m);
    return 0;
}

/* --- the client --- */

typedef struct client {
    fl_rpc *rpc;
    fl_rpc_peer *peer;
    fl_msg head; /* job, session and what else all requests have */
    const size *size;
    fl_parcel *grad[FLIGHT];

    pthread_mutex_t lock;
    pthread_cond_t quiet;
    int64_t seq;
    int64_t left; /* pushes to be made */
    int flying;
    int64_t g; /* of the answer to a join */
} client;

static void push(client *c, uint64_t slot);

static void answered(client *c, const fl_rpc_reply *reply, fl_msg_kind kind)
{
    fl_arena *a = fl_arena_new();
    fl_msg m = {0};
    if (reply->end == FL_RPC_OK &&
        !fl_msg_decode("the server", reply->packet, a, &m) && m.kind == kind)
        c->g = m.g;
    else {
        fprintf(stderr, "apply: %s %s\n", fl_msg_name(m.kind),
                m.text ? m.text : reply->text);
        exit(1);
    }
    fl_arena_free(a);
}

/* The last of what is flying has landed. */
static bool land(client *c, bool more)
{
    pthread_mutex_lock(&c->lock);
    more = more && c->left > 0;
    c->left -= more;
    if (!more && !--c->flying)
        pthread_cond_signal(&c->quiet);
    pthread_mutex_unlock(&c->lock);
    return more;
}

static void pushed(void *self, uint64_t slot, const fl_rpc_reply *reply)
{
    client *c = self;
    answered(c, reply, FL_MSG_ACK);
    if (land(c, true))
        push(c, slot);
}

static void push(client *c, uint64_t slot)
{
    fl_msg m = c->head;
    m.kind = FL_MSG_PUSH;
    m.count = 1;
    m.blob = fl_parcel_blob(c->grad[slot]);
    pthread_mutex_lock(&c->lock);
    m.tag = (uint64_t)(m.seq = ++c->seq);
    pthread_mutex_unlock(&c->lock);
    fl_packet *p = fl_msg_encode(&m);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_rpc_call(c->rpc, c->peer, fl_msg_method(m.kind), p, 0,
                (fl_rpc_done){pushed, c, slot});
}

static void await(client *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->flying)
        pthread_cond_wait(&c->quiet, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void run_pushes(void *self, int64_t n)
{
    client *c = self;
    c->left = n - FLIGHT;
    c->flying = FLIGHT;
    for (uint64_t i = 0; i < FLIGHT; i++)
        push(c, i);
    await(c);
}

static void said(void *self, uint64_t kind, const fl_rpc_reply *reply)
{
    client *c = self;
    answered(c, reply, (fl_msg_kind)kind);
    land(c, false);
}

static void say(client *c, fl_msg_kind kind, fl_msg_kind answer)
{
    fl_msg m = c->head;
    m.kind = kind;
    m.tag = 1;
    m.text = "apply";
    c->flying = 1;
    fl_rpc_call(c->rpc, c->peer, fl_msg_method(kind), fl_msg_encode(&m), 0,
                (fl_rpc_done){said, c, (uint64_t)answer});
    await(c);
    c->head.g = c->g;
}

static void client_init(client *c, const size *s, const model *m,
                        const char *endpoint)
{
    const fl_placement *place = fl_placement_of(fl_cut_trainer(m->cut)->job);
    const fl_job job = fl_placement_job(place, &(fl_job){0});
    *c = (client){.size = s, .head = {.job = job.id, .session = {1, 2}}};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->quiet, NULL);
    must(!fl_rpc_new(&(fl_rpc_opts){0}, &c->rpc), "client");
    c->peer = fl_rpc_peer_at(c->rpc, endpoint);
    for (int i = 0; i < FLIGHT; i++) {
        fl_tensor t = {0};
        char name[16];
        const fl_shape shape = {2, {s->rows, s->columns}};
        snprintf(name, sizeof name, "w%d@GRAD", i);
        must(!fl_tensor_resize(&t, FL_F32, &shape), "gradient");
        for (int64_t k = 0; k < s->rows * s->columns; k++)
            ((float *)t.data)[k] = (float)(k % 7) * 0.1f;
        c->grad[i] = fl_parcel_new();
        fl_parcel_add(c->grad[i], name, &t);
        fl_tensor_fini(&t);
    }
}

static void client_fini(client *c)
{
    fl_rpc_free(c->rpc);
    for (int i = 0; i < FLIGHT; i++)
        fl_parcel_unref(c->grad[i]);
    pthread_cond_destroy(&c->quiet);
    pthread_mutex_destroy(&c->lock);
}

static void measure(client *c, clockid_t other, double length)
{
    const double gb = (double)(c->size->rows * c->size->columns) * 4e-9;
    const rate r = best_rate(run_pushes, c, 8 * FLIGHT, gb, other, length);
    printf("\"push_%s\": %.3f, \"push_%s_cpu\": %.4f", c->size->name, r.speed,
           c->size->name, r.cpu);
}

static void run_size(const size *s, double length)
{
    char endpoint[64];
    client c;
    free_ports(1, endpoint, sizeof endpoint);
    child server =
        start((const char *[]){"apply", "serve", s->name, endpoint, NULL});
    model m = build(s, endpoint);
    must(!fl_wait_ports(1, (const char *[]){endpoint}, NULL), endpoint);
    client_init(&c, s, &m, endpoint);
    say(&c, FL_MSG_JOIN, FL_MSG_GRANT);
    measure(&c, server.cpu, length);
    say(&c, FL_MSG_COMPLETE, FL_MSG_ACK);
    stop(&server);
    client_fini(&c);
    model_free(&m);
}

int main(int argc, char **argv)
{
    const int n = sizeof sizes / sizeof *sizes;
    setenv("FL_LOG", "error", 0);
    setenv("FLUID_LINGER", "0.1", 0);
    setenv("FLUID_LEASE", "600", 1); /* nobody renews it here */
    for (int i = 0; i < n && argc > 3; i++)
        if (!strcmp(argv[2], sizes[i].name))
            return serve(&sizes[i], argv[3]);
    pin(0);
    for (int i = 0; i < n; i++) {
        printf(i ? ", " : "{");
        fflush(stdout);
        run_size(&sizes[i], (argc > 1 ? atof(argv[1]) : 4) / n);
    }
    printf("}\n");
    return 0;
}
