/* SPDX-License-Identifier: Apache-2.0 */
/* test_server.h - servers of a job on threads of this process, and trainers
 * that speak to them message by message. Tests only. */
#ifndef FL_PSERVER_TEST_SERVER_H
#define FL_PSERVER_TEST_SERVER_H

#include "base/pool.h"
#include "base/test.h"
#include "exec/exe.h"
#include "net/rpc.h"
#include "transpile/test_transpile.h"
#include "wire/codec.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MOST_SERVERS = 2
};

/* --- servers --- */

typedef struct host {
    fl_pool *pool;
    fl_group group;
    fl_entropy entropy;
    fl_exec_env env;
    fl_exe *exe;
    fl_scope *scope;
    const fl_program *program;
    fl_err err;
    char why[512];
} host;

typedef struct town {
    scene s;
    int n;
    char endpoint[MOST_SERVERS][32], all[80];
    host host[MOST_SERVERS];
} town;

static inline int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a));
    CHECK(!getsockname(fd, (struct sockaddr *)&a, &size));
    close(fd);
    return ntohs(a.sin_port);
}

static inline void host_run(void *arg)
{
    host *h = arg;
    h->err = fl_exe_run(h->exe, h->program, h->scope, 0, NULL, 0, NULL);
    snprintf(h->why, sizeof h->why, "%s", h->err ? fl_errmsg() : "");
}

static inline void host_start(host *h)
{
    CHECK_OK(fl_pool_new("host", 1, &h->pool));
    fl_pool_submit(h->pool, &h->group, host_run, h);
}

/* Transpile x[2] -> fc[1] with w and b, sgd of rate 0.5. Servers do not start
 * yet. */
static inline void town_cut(town *t, int servers, int trainers, bool async)
{
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    *t = (town){.n = servers};
    setenv("FLUID_REJOIN", "0", 1);
    setenv("FLUID_LINGER", "0.2", 1);
    scene_begin(&t->s);
    scene_line(&t->s, 2, 1, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&t->s, "sgd", scene_rate);
    for (int i = 0; i < servers; i++) {
        snprintf(t->endpoint[i], sizeof t->endpoint[i], "127.0.0.1:%d",
                 free_port());
        snprintf(t->all + strlen(t->all), sizeof t->all - strlen(t->all),
                 "%s%s", i ? "," : "", t->endpoint[i]);
    }
    scene_cut(&t->s, &(fl_transpile_opts){.pservers = t->all,
                                          .trainers = trainers,
                                          .async = async});
    for (int i = 0; i < servers; i++) {
        host *h = &t->host[i];
        h->entropy = fl_entropy_fake((uint64_t)i + 1);
        h->env = (fl_exec_env){.registry = fl_check_registry(),
                               .disk = fl_disk_real(),
                               .entropy = &h->entropy};
        h->exe = fl_exe_make(&h->env);
        h->scope = fl_scope_new();
        h->program = t->s.cut->server[i];
        CHECK_OK(fl_exe_run(h->exe, t->s.cut->server_startup[i], h->scope, 0,
                            NULL, 0, NULL));
    }
}

static inline void town_open(town *t, int servers, int trainers, bool async)
{
    town_cut(t, servers, trainers, async);
    for (int i = 0; i < servers; i++)
        host_start(&t->host[i]);
}

/* Wait until a server has ended; its result. */
static inline fl_err town_wait(town *t, int i)
{
    host *h = &t->host[i];
    CHECK_OK(fl_pool_wait(h->pool, &h->group, 20 * FL_SEC));
    return h->err ? fl_fail(h->err, "%s", h->why) : FL_OK;
}

static inline void town_close(town *t)
{
    for (int i = 0; i < t->n; i++) {
        fl_pool_free(t->host[i].pool);
        fl_exe_free(t->host[i].exe);
        fl_scope_free(t->host[i].scope);
    }
    scene_end(&t->s);
}

static inline void town_set(town *t, int i, const char *name, int64_t n,
                            const float *x)
{
    fl_value *v = fl_scope_find(t->host[i].scope, name);
    CHECK(v != NULL && fl_tensor_numel(&v->tensor) == n);
    memcpy(v->tensor.data, x, (size_t)n * sizeof *x);
}

/* --- a trainer --- */

typedef struct talker {
    const town *town;
    fl_rpc *rpc;
    fl_id job, session;
    int64_t g, seq[MOST_SERVERS];
    uint64_t tag, open;
    pthread_mutex_t lock;
    pthread_cond_t news;
    int answers, words;
    bool hung_up; /* the open call has ended */
    char farewell[512];
    /* the last answer: */
    fl_rpc_end end;
    fl_err code; /* status of the call */
    fl_msg m;    /* the message; its pointers are NULL */
    char text[512];
    fl_parcel *values;
} talker;

static inline void talker_hear(talker *k, const fl_packet *p)
{
    fl_arena *arena = fl_arena_new();
    CHECK_OK(fl_msg_decode("the server", p, arena, &k->m));
    snprintf(k->text, sizeof k->text, "%s", k->m.text ? k->m.text : "");
    fl_parcel_unref(k->values);
    k->values = fl_parcel_of(k->m.blob);
    fl_arena_free(arena);
}

static inline void talker_done(void *self, uint64_t tag,
                               const fl_rpc_reply *reply)
{
    talker *k = self;
    pthread_mutex_lock(&k->lock);
    k->end = reply->end;
    k->code = reply->code;
    k->m = (fl_msg){0};
    snprintf(k->text, sizeof k->text, "%s", reply->text);
    if (reply->end == FL_RPC_OK)
        talker_hear(k, reply->packet);
    k->answers++;
    pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
}

static inline void talker_word(void *self, uint64_t tag, const fl_packet *p)
{
    talker *k = self;
    pthread_mutex_lock(&k->lock);
    talker_hear(k, p);
    k->words++;
    pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
}

static inline void talker_ended(void *self, uint64_t tag,
                                const fl_rpc_reply *reply)
{
    talker *k = self;
    pthread_mutex_lock(&k->lock);
    k->hung_up = true;
    snprintf(k->farewell, sizeof k->farewell, "%s", reply->text);
    pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
}

static inline void talker_init(talker *k, const town *t, uint64_t session)
{
    const fl_placement *place = fl_placement_of(t->s.cut->trainer->job);
    *k = (talker){.town = t, .session = {77, session}};
    k->job = fl_placement_job(place, &(fl_job){0}).id;
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->news, NULL);
    CHECK_OK(fl_rpc_new(&(fl_rpc_opts){0}, &k->rpc));
}

static inline void talker_fini(talker *k)
{
    fl_rpc_free(k->rpc);
    fl_parcel_unref(k->values);
    pthread_cond_destroy(&k->news);
    pthread_mutex_destroy(&k->lock);
}

static inline void talker_wait(talker *k, const int *count, int until)
{
    pthread_mutex_lock(&k->lock);
    while (*count < until)
        pthread_cond_wait(&k->news, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

/* Send a request and do not wait. */
static inline void talker_send(talker *k, int server, fl_msg m)
{
    m.job = k->job;
    m.session = k->session;
    m.g = k->g;
    m.tag = ++k->tag;
    fl_rpc_call(k->rpc, fl_rpc_peer_at(k->rpc, k->town->endpoint[server]),
                fl_msg_method(m.kind), fl_msg_encode(&m), 20 * FL_SEC,
                (fl_rpc_done){talker_done, k, 0});
}

/* Send a request once, and wait; the kind of the answer. */
static inline fl_msg_kind talker_try(talker *k, int server, fl_msg m)
{
    const int until = k->answers + 1;
    talker_send(k, server, m);
    talker_wait(k, &k->answers, until);
    return k->m.kind;
}

/* Repeat a request until the server runs; the kind of the answer. */
static inline fl_msg_kind talker_ask(talker *k, int server, fl_msg m)
{
    for (int i = 0; i < 400; i++) {
        talker_try(k, server, m);
        if (k->end != FL_RPC_REFUSED)
            return k->m.kind;
        usleep(20000);
    }
    return FL_MSG_NONE;
}

static inline void talker_renew(talker *k)
{
    const int until = k->words + 1;
    fl_rpc_say(k->rpc, k->open,
               fl_msg_encode(&(fl_msg){.kind = FL_MSG_RENEW,
                                       .job = k->job,
                                       .session = k->session,
                                       .g = k->g}));
    talker_wait(k, &k->words, until);
}

/* Join and open the session. */
static inline void talker_join(talker *k, int rank)
{
    CHECK_INT(talker_ask(k, 0, (fl_msg){.kind = FL_MSG_JOIN, .rank = rank}),
              FL_MSG_GRANT);
    CHECK_INT(k->m.rank, rank);
    k->g = k->m.g;
    k->open = fl_rpc_open(k->rpc, fl_rpc_peer_at(k->rpc, k->town->endpoint[0]),
                          fl_msg_method(FL_MSG_RENEW), talker_word,
                          (fl_rpc_done){talker_ended, k, 0});
    talker_renew(k);
    CHECK_INT(k->m.kind, FL_MSG_ACK);
}

/* Pull a variable; name NULL: pull nothing. */
static inline fl_msg_kind talker_pull(talker *k, int server, int64_t round,
                                      const char *name)
{
    fl_parcel *want = fl_parcel_new();
    if (name)
        fl_parcel_want(want, name, -1, NULL);
    const fl_blob b = fl_parcel_blob(want);
    const fl_msg_kind kind = talker_ask(
        k, server, (fl_msg){.kind = FL_MSG_PULL, .round = round, .blob = b});
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(want);
    return kind;
}

static inline float talker_value(const talker *k, int64_t i)
{
    float x;
    CHECK(k->values && k->values->n == 1);
    fl_bytes_copy(k->values->item[0].data, (size_t)i * sizeof x, &x, sizeof x);
    return x;
}

/* Make the only push of a round: [n, width] floats; name NULL: an empty push.
 */
static inline fl_msg_kind talker_push(talker *k, int server, int64_t round,
                                      const char *name, int64_t n,
                                      int64_t width, const float *x)
{
    const fl_shape s = {width ? 2 : 1, {n, width}};
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    fl_parcel *p = fl_parcel_new();
    if (name)
        fl_parcel_add(p, name, &t);
    const fl_blob b = fl_parcel_blob(p);
    const fl_msg_kind kind = talker_ask(k, server,
                                        (fl_msg){.kind = FL_MSG_PUSH,
                                                 .round = round,
                                                 .seq = ++k->seq[server],
                                                 .count = 1,
                                                 .blob = b});
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(p);
    return kind;
}

static inline fl_msg_kind talker_say(talker *k, fl_msg_kind kind, int64_t round)
{
    return talker_ask(k, 0, (fl_msg){.kind = kind, .round = round});
}

/* Append a program as bytes, for a SETUP message. */
static inline void parcel_add_program(fl_parcel *p, const char *name,
                                      const fl_program *of)
{
    void *bytes;
    size_t n;
    fl_tensor own = {0};
    CHECK_OK(fl_program_encode(of, &bytes, &n));
    const fl_shape shape = {1, {(int64_t)n}};
    CHECK_OK(fl_tensor_resize(&own, FL_U8, &shape));
    memcpy(own.data, bytes, n);
    fl_free(bytes);
    fl_parcel_add(p, name, &own); /* it takes a reference */
    fl_tensor_fini(&own);
}

#endif
