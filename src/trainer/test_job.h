/* SPDX-License-Identifier: Apache-2.0 */
/* test_job.h - the servers of a job in this process: the real state machines,
 * a real network, and a store that a test can read.
 *
 * A variable "w" is a matrix of floats; its gradient is "w@GRAD", and an update
 * subtracts the mean of the gradients from w. Tests only. */
#ifndef FL_TRAINER_TEST_JOB_H
#define FL_TRAINER_TEST_JOB_H

#include "base/pool.h"
#include "base/test.h"
#include "net/rpc.h"
#include "protocol/coord.h"
#include "protocol/server.h"
#include "pserver/tally.h"
#include "table/table.h"
#include "trainer/trainer.h"
#include "wire/codec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    TEST_SERVERS = 2,
    TEST_VARS = 4
};

typedef struct test_var {
    const char *name;
    fl_tensor value; /* [rows, width] */
} test_var;

typedef struct test_server {
    struct test_job *job;
    int index;
    char address[32];
    fl_rpc *rpc;
    fl_server *machine;
    fl_rpc_method method[FL_MSG_KINDS];
    fl_outbox out;
    fl_store store;
    test_var var[TEST_VARS];
    int vars;
    int applied;       /* finished tasks of the store to report */
    int pulls, pushes; /* requests so far */
    bool lists_all;    /* also lists rows of other servers */
    size_t largest;    /* bytes of the largest push or answer so far */
    int lose_at;       /* pulls after which the session is lost; or 0 */
    int lose_at_push;  /* pushes after which the session is lost; or 0 */
} test_server;

typedef struct test_job {
    pthread_mutex_t lock;
    bool ending;
    fl_job job;
    fl_placement place;
    const char *address[TEST_SERVERS];
    fl_coord *coord;
    fl_tallies *tallies;
    fl_outbox coord_out;
    test_server server[TEST_SERVERS];
    FL_VEC(fl_msg *) post; /* messages between machines; their receivers: */
    FL_VEC(fl_peer) to, from;
    fl_pool *pool;
    fl_group ticker;
} test_job;

static inline int64_t test_now(void)
{
    return fl_clock_now(fl_clock_real());
}

/* --- the store --- */

static inline test_var *test_find(test_server *s, const char *name, size_t n)
{
    for (int i = 0; i < s->vars; i++)
        if (strlen(s->var[i].name) == n && !strncmp(s->var[i].name, name, n))
            return &s->var[i];
    return NULL;
}

static inline test_var *test_of_grad(test_server *s, const char *name)
{
    const char *at = strchr(name, '@');
    return at ? test_find(s, name, (size_t)(at - name)) : NULL;
}

static inline fl_err test_check(void *self, const fl_staged *by)
{
    const fl_parcel *p = fl_parcel_of(by->part[0]);
    for (int i = 0; p && i < p->n; i++)
        if (!test_of_grad(self, p->item[i].name))
            return fl_fail(FL_ENOENT,
                           "push: no variable has the gradient "
                           "\"%s\"",
                           p->item[i].name);
    return FL_OK;
}

static inline void test_take(test_var *v, const fl_item *item, int n)
{
    const int64_t width = v->value.shape.dim[1];
    const int64_t all = fl_shape_numel(&item->shape);
    float *w = v->value.data, x;
    int64_t row = 0;
    for (int64_t i = 0; i < all; i++) {
        int64_t at = item->first + i;
        if (item->kind == FL_SELECTED_ROWS) {
            fl_bytes_copy(item->rows, (size_t)(i / width) * sizeof row, &row,
                          sizeof row);
            at = row * width + i % width;
        }
        fl_bytes_copy(item->data, (size_t)i * sizeof x, &x, sizeof x);
        w[at] -= x / (float)n;
    }
}

static inline void test_apply(void *self, int64_t round, const fl_staged *by,
                              int n)
{
    test_server *s = self;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < by[i].n; k++) {
            const fl_parcel *p = fl_parcel_of(by[i].part[k]);
            for (int j = 0; p && j < p->n; j++)
                test_take(test_of_grad(s, p->item[j].name), &p->item[j], n);
        }
    s->applied++;
}

/* Whether `row` is one of this server's rows after `after` and before *next. */
static inline bool test_is_next(const test_server *s, int64_t row,
                                const int64_t *after, int64_t next)
{
    const uint64_t key = fl_table_key(s->job->place.tables);
    const uint64_t order = fl_table_order(key, row);
    return (s->lists_all || row % s->job->job.servers == s->index) &&
           (!after || order > fl_table_order(key, *after)) &&
           (next < 0 || order < fl_table_order(key, next));
}

/* Answer with the next two rows only. A server may always list fewer rows than
 * it could. */
static inline void test_give_ids(test_server *s, fl_parcel *p,
                                 const fl_item *item, int64_t rows)
{
    const fl_shape shape = {1, {2}};
    fl_tensor t = {0};
    int64_t at = 0, after = -1;
    const bool begun = item->shape.dim[0] > 0;
    if (begun)
        fl_bytes_copy(item->rows, 0, &after, sizeof after);
    CHECK_OK(fl_tensor_resize(&t, FL_I64, &shape));
    for (int64_t next; at < 2; at++, after = next) {
        next = -1;
        for (int64_t row = 0; row < rows; row++)
            if (test_is_next(s, row, begun || at ? &after : NULL, next))
                next = row;
        if (next < 0)
            break;
        ((int64_t *)t.data)[at] = next;
    }
    t.shape.dim[0] = at;
    fl_parcel_add(p, item->name, &t);
    fl_tensor_fini(&t);
}

static inline void test_weigh(test_server *s, const fl_parcel *p)
{
    size_t bytes = 0;
    for (int i = 0; p && i < p->n; i++)
        bytes += p->item[i].data.size + p->item[i].rows.size;
    s->largest = bytes > s->largest ? bytes : s->largest;
}

static inline void test_give(test_server *s, fl_parcel *p, const fl_item *item)
{
    const test_var *v = test_find(s, item->name, strlen(item->name));
    fl_tensor t = {0};
    CHECK(v != NULL);
    if (item->height) {
        test_give_ids(s, p, item, v->value.shape.dim[0]);
        return;
    }
    if (fl_item_is_range(item)) {
        fl_parcel_add_slice(p, item->name, &v->value, item->first,
                            item->shape.dim[0]);
        return;
    }
    if (item->shape.rank) { /* some rows */
        fl_shape shape = v->value.shape;
        shape.dim[0] = item->shape.dim[0];
        CHECK_OK(fl_tensor_resize(&t, FL_F32, &shape));
        const size_t bytes = (size_t)shape.dim[1] * sizeof(float);
        for (int64_t i = 0; i < shape.dim[0]; i++) {
            int64_t row;
            fl_bytes_copy(item->rows, (size_t)i * sizeof row, &row, sizeof row);
            memcpy((char *)t.data + (size_t)i * bytes,
                   (char *)v->value.data + (size_t)row * bytes, bytes);
        }
    } else {
        CHECK_OK(fl_tensor_copy(&t, &v->value));
    }
    fl_parcel_add(p, item->name, &t);
    fl_tensor_fini(&t);
}

static inline void test_answer(test_server *s, uint64_t call, const fl_msg *m)
{
    fl_rpc_answer(s->rpc, call, fl_msg_encode(m));
}

static inline void test_give_all(void *self, fl_blob names, fl_peer to,
                                 const fl_msg *reply)
{
    test_server *s = self;
    const fl_parcel *want = fl_parcel_of(names);
    fl_parcel *p = fl_parcel_new();
    fl_msg m = *reply;
    for (int i = 0; want && i < want->n; i++)
        test_give(s, p, &want->item[i]);
    test_weigh(s, p);
    m.blob = fl_parcel_blob(p);
    test_answer(s, to.call, &m);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
}

/* --- messages --- */

static inline void test_carry(test_job *j, fl_outbox *box, test_server *by,
                              fl_peer from)
{
    for (int64_t i = 0; i < box->out.n; i++) {
        const fl_envelope *l = &box->out.at[i];
        if (l->to.kind == FL_PEER_CALL) {
            test_answer(by, l->to.call, &l->msg);
            continue;
        }
        fl_push(&j->post, fl_msg_dup(&l->msg));
        fl_push(&j->to, l->to);
        fl_push(&j->from, from);
    }
    fl_outbox_clear(box);
}

static inline bool test_deliver(test_job *j)
{
    if (!j->post.n)
        return false;
    fl_msg *m = j->post.at[0];
    const fl_peer to = j->to.at[0], from = j->from.at[0];
    fl_remove(&j->post, 0);
    fl_remove(&j->to, 0);
    fl_remove(&j->from, 0);
    if (to.kind == FL_PEER_COORD)
        fl_coord_recv(j->coord, from, m, test_now());
    else
        fl_server_recv(j->server[to.index].machine, from, m, test_now());
    fl_msg_free(m);
    return true;
}

/* Deliver messages until no machine has any. */
static inline void test_pump(test_job *j)
{
    do {
        test_carry(j, &j->coord_out, &j->server[0],
                   (fl_peer){FL_PEER_COORD, 0, 0});
        for (int i = 0; i < j->job.servers; i++) {
            test_server *s = &j->server[i];
            for (; s->applied; s->applied--)
                fl_server_applied(s->machine, NULL, test_now());
            fl_server_flush(s->machine);
            test_carry(j, &s->out, s, (fl_peer){FL_PEER_SERVER, i, 0});
        }
    } while (test_deliver(j));
}

static inline void test_tally(test_server *s, fl_peer from, const fl_msg *m)
{
    const int rank = fl_coord_admit(s->job->coord, from, m, test_now());
    if (rank < 0)
        return;
    const fl_msg answer = fl_tallies_report(s->job->tallies, rank, m);
    test_answer(s, from.call, &answer);
    fl_keeper_parcels.drop(NULL, answer.blob);
}

static inline void test_feed(test_server *s, uint64_t call, const fl_msg *m)
{
    const fl_peer from = {FL_PEER_CALL, 0, call};
    s->pulls += m->kind == FL_MSG_PULL;
    s->pushes += m->kind == FL_MSG_PUSH;
    if (m->kind == FL_MSG_PUSH)
        test_weigh(s, fl_parcel_of(m->blob));
    if (m->kind == FL_MSG_TALLY)
        test_tally(s, from, m);
    else if (fl_msg_info_of(m->kind)->to == FL_PARTY_COORD)
        fl_coord_recv(s->job->coord, from, m, test_now());
    else
        fl_server_recv(s->machine, from, m, test_now());
}

/* End the session of the job's only member, without telling it. */
static inline void test_throw_out(test_job *j)
{
    fl_member m[4];
    CHECK_INT(fl_coord_members(j->coord, m), 1);
    fl_coord_recv(j->coord, (fl_peer){FL_PEER_CALL, 0, 999999},
                  &(fl_msg){.kind = FL_MSG_FAILED,
                            .job = j->job.id,
                            .session = m[0].session,
                            .g = m[0].g,
                            .tag = 1,
                            .code = 1,
                            .text = "thrown out"},
                  test_now());
    test_pump(j);
}

static inline void test_job_lose(test_job *j)
{
    pthread_mutex_lock(&j->lock);
    test_throw_out(j);
    pthread_mutex_unlock(&j->lock);
}

/* End the session between two answers: after a pull with other values, after a
 * push that is applied. */
static inline void test_lose_at(test_server *s)
{
    if (s->lose_at_push && s->pushes >= s->lose_at_push) {
        s->lose_at_push = 0;
        test_throw_out(s->job);
    }
    if (!s->lose_at || s->pulls < s->lose_at)
        return;
    s->lose_at = 0;
    for (int i = 0; i < s->vars; i++)
        for (int64_t k = 0; k < fl_tensor_numel(&s->var[i].value); k++)
            ((float *)s->var[i].value.data)[k] += 1000;
    test_throw_out(s->job);
}

static inline void test_heard(void *self, const fl_rpc_method *by,
                              uint64_t call, const fl_packet *p)
{
    test_server *s = self;
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    if (p)
        CHECK_OK(fl_msg_decode("trainer", p, arena, &m));
    pthread_mutex_lock(&s->job->lock);
    if (p)
        test_feed(s, call, &m);
    test_pump(s->job);
    test_lose_at(s);
    pthread_mutex_unlock(&s->job->lock);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
}

static inline void test_hangup(void *self, uint64_t call)
{
    test_server *s = self;
    pthread_mutex_lock(&s->job->lock);
    if (s->index == 0)
        fl_coord_hangup(s->job->coord, call, test_now());
    fl_server_hangup(s->machine, call);
    test_pump(s->job);
    pthread_mutex_unlock(&s->job->lock);
}

static inline void test_tick(void *self)
{
    test_job *j = self;
    const struct timespec nap = {0, 20 * FL_MS};
    for (bool on = true; on;) {
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&j->lock);
        fl_coord_tick(j->coord, test_now());
        for (int i = 0; i < j->job.servers; i++)
            fl_server_tick(j->server[i].machine, test_now());
        test_pump(j);
        on = !j->ending;
        pthread_mutex_unlock(&j->lock);
    }
}

/* --- the job --- */

static inline void test_start_server(test_job *j, int i)
{
    test_server *s = &j->server[i];
    int port = 0;
    *s = (test_server){.job = j, .index = i};
    fl_msg_methods(s->method, (fl_rpc_method){.heard = test_heard},
                   (fl_rpc_method){.open = true, .heard = test_heard},
                   (fl_rpc_method){.open = true, .heard = test_heard});
    s->store =
        (fl_store){s, fl_keeper_parcels, test_check, test_apply, test_give_all};
    fl_outbox_init(&s->out);
    s->machine = fl_server_new(&j->job, i, (fl_state){7 + (uint64_t)i, 1},
                               &s->store, &s->out, test_now());
    CHECK_OK(fl_rpc_new(
        &(fl_rpc_opts){.methods = s->method, .self = s, .hangup = test_hangup},
        &s->rpc));
    CHECK_OK(fl_rpc_listen(s->rpc, "127.0.0.1:0", &port));
    fl_rpc_healthy(s->rpc, true);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", port);
    j->address[i] = s->address;
}

static inline void test_job_begin(test_job *j, int servers, int trainers,
                                  bool async)
{
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    *j = (test_job){.place = {.n_servers = servers,
                              .servers = j->address,
                              .server = -1,
                              .trainers = trainers,
                              .async = async,
                              .digest = {3, 4}}};
    pthread_mutex_init(&j->lock, NULL);
    /* no RENEW is due, so that a trainer learns of its lost session from the
     * answer to a request */
    setenv("FLUID_LEASE", "3600", 1);
    j->job = fl_placement_job(&j->place,
                              &(fl_job){.linger = 1, .lease = 3600 * FL_SEC});
    fl_outbox_init(&j->coord_out);
    j->coord =
        fl_coord_new(&j->job, (fl_state){7, 1}, &j->coord_out, test_now());
    j->tallies = fl_tallies_new(trainers);
    for (int i = 0; i < servers; i++)
        test_start_server(j, i);
    CHECK_OK(fl_pool_new("servers", 1, &j->pool));
    fl_pool_submit(j->pool, &j->ticker, test_tick, j);
}

/* Add a variable to a server; all its elements are equal. */
static inline void test_job_var(test_job *j, int server, const char *name,
                                int64_t rows, int64_t width, float start)
{
    test_server *s = &j->server[server];
    test_var *v = &s->var[s->vars++];
    const fl_shape shape = {2, {rows, width}};
    v->name = name;
    CHECK_OK(fl_tensor_resize(&v->value, FL_F32, &shape));
    for (int64_t i = 0; i < rows * width; i++)
        ((float *)v->value.data)[i] = start;
}

/* How many trainers have completed. */
static inline int test_job_done(test_job *j)
{
    pthread_mutex_lock(&j->lock);
    const int done = fl_coord_done(j->coord);
    pthread_mutex_unlock(&j->lock);
    return done;
}

static inline void test_job_end(test_job *j)
{
    pthread_mutex_lock(&j->lock);
    j->ending = true;
    pthread_mutex_unlock(&j->lock);
    fl_pool_free(j->pool);
    for (int i = 0; i < j->job.servers; i++)
        fl_rpc_free(j->server[i].rpc);
    for (int i = 0; i < j->job.servers; i++) {
        test_server *s = &j->server[i];
        fl_server_free(s->machine);
        fl_outbox_fini(&s->out);
        for (int k = 0; k < s->vars; k++)
            fl_tensor_fini(&s->var[k].value);
    }
    fl_coord_free(j->coord);
    fl_tallies_free(j->tallies);
    fl_outbox_fini(&j->coord_out);
    while (j->post.n)
        fl_msg_free(j->post.at[--j->post.n]);
    fl_vec_fini(&j->post);
    fl_vec_fini(&j->to);
    fl_vec_fini(&j->from);
    pthread_mutex_destroy(&j->lock);
}

#endif
