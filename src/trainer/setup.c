/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - asks servers whether they have a job, and brings it to them.
 *
 * The coordinator comes last, so that no trainer is granted a rank before every
 * server can serve it. */
#include "trainer/setup.h"

#include "base/log.h"
#include "base/random.h"
#include "cluster/tls.h"
#include "net/rpc.h"
#include "wire/codec.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PAUSE (50 * FL_MS)  /* between polls of the caller's watch */
#define AGAIN (200 * FL_MS) /* between two questions to a server */

enum {
    PART_BYTES = 16 << 20 /* start values in a message, about */
};

/* The answer to a request. */
typedef struct answer {
    pthread_mutex_t lock;
    pthread_cond_t came;
    bool here;
    fl_rpc_end end;
    fl_err code;      /* of FL_RPC_DENIED */
    bool no_listener; /* nobody listens at the address */
    fl_arena *arena;  /* holds what msg points to */
    fl_msg msg;       /* kind NONE: there is no message, but `why` */
    char why[512];
} answer;

typedef struct setup {
    const fl_setup *of;
    const fl_watch *by;
    fl_job job;
    fl_rpc *rpc;
    fl_id session;
    char who[96]; /* host:pid */
    fl_str about;
    uint64_t tag;
    int64_t began, reported;
    fl_refusals refused; /* of the server that is being set up */
    bool heard;          /* it has answered before */
} setup;

static int64_t time_now(void)
{
    return fl_clock_now(fl_clock_real());
}

/* --- one request --- */

static void on_answer(void *self, uint64_t tag, const fl_rpc_reply *reply)
{
    answer *a = self;
    fl_msg m = {0};
    fl_err err = FL_OK;
    if (reply->end == FL_RPC_OK)
        err = fl_msg_decode(NULL, reply->packet, a->arena, &m);
    fl_keeper_parcels.drop(NULL, m.blob);
    pthread_mutex_lock(&a->lock);
    a->end = reply->end;
    a->code = reply->code;
    a->no_listener = reply->no_listener;
    a->msg = err ? (fl_msg){0} : m;
    snprintf(a->why, sizeof a->why, "%s", err ? fl_errmsg() : reply->text);
    a->here = true;
    pthread_cond_signal(&a->came);
    pthread_mutex_unlock(&a->lock);
}

static void init_answer(answer *a)
{
    pthread_condattr_t monotonic;
    *a = (answer){.arena = fl_arena_new()};
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->came, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void fini_answer(answer *a)
{
    pthread_cond_destroy(&a->came);
    pthread_mutex_destroy(&a->lock);
    fl_arena_free(a->arena);
}

static fl_err poll_watch(const setup *s)
{
    const fl_watch *by = s->by;
    if (by && by->poll && by->poll(by->user))
        return fl_fail(FL_EINTR, "the wait for servers was interrupted");
    return FL_OK;
}

/* Wait for the answer. It comes in any case, so that nothing is left behind
 * when the caller wants to stop. */
static fl_err await_answer(const setup *s, answer *a, uint64_t call)
{
    fl_err err = FL_OK;
    pthread_mutex_lock(&a->lock);
    while (!a->here) {
        const int64_t end = time_now() + PAUSE;
        const struct timespec at = {end / FL_SEC, end % FL_SEC};
        pthread_cond_timedwait(&a->came, &a->lock, &at);
        if (a->here || err)
            continue;
        pthread_mutex_unlock(&a->lock);
        err = poll_watch(s);
        if (err)
            fl_rpc_cancel(s->rpc, call);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return err;
}

/* Send part `seq` to a server; part 0 is the question. */
static fl_err send_part(setup *s, int server, int64_t seq, int64_t count,
                        fl_parcel *p, answer *a)
{
    fl_msg m = {.kind = FL_MSG_SETUP,
                .job = s->job.id,
                .session = s->session,
                .tag = ++s->tag,
                .rank = s->of->place->trainer_id,
                .server = server,
                .seq = seq,
                .count = count,
                .text = s->who,
                .about = s->about.at};
    if (p)
        m.blob = fl_parcel_blob(p);
    const uint64_t call = fl_rpc_call(
        s->rpc, fl_rpc_peer_at(s->rpc, s->of->place->servers[server]),
        fl_msg_method(m.kind), fl_msg_encode(&m), s->job.reach,
        (fl_rpc_done){on_answer, a, 0});
    fl_keeper_parcels.drop(NULL, m.blob);
    return await_answer(s, a, call);
}

/* --- failures and waits --- */

/* A server refuses for good. */
static fl_err fail_refused(const setup *s, int server, const answer *a)
{
    char name[160];
    const char *text = a->msg.text ? a->msg.text : a->why;
    fl_str why = {0};
    fl_job_server(&s->job, server, name, sizeof name);
    if (a->msg.about)
        fl_job_differs(&s->job, a->msg.about, &why);
    const fl_err err = fl_fail(
        a->msg.code ? (fl_err)a->msg.code : FL_EINVAL, "%s: %s%s%s", name, text,
        why.n ? "; what differs: " : "", why.n ? why.at : "");
    fl_str_fini(&why);
    return err;
}

/* Pause before a server is asked again. `what` it waits for is logged now and
 * then. */
static fl_err pause_setup(setup *s, int server, const char *what)
{
    const struct timespec t = {.tv_nsec = AGAIN};
    const int64_t now = time_now();
    char name[160];
    fl_job_server(&s->job, server, name, sizeof name);
    if (now - s->began > s->job.start)
        return fl_fail(
            FL_ETIMEOUT,
            "setup: %s was not ready within %.0f s (FLUID_START): %s", name,
            (double)(now - s->began) / (double)FL_SEC, what);
    if (now - s->began >= s->job.stall && now - s->reported >= s->job.stall) {
        s->reported = now;
        FL_INFO("%s waits for %s: %s, %.1f s (limit %.0f s)", s->who, name,
                what, (double)(now - s->began) / (double)FL_SEC,
                (double)s->job.start / (double)FL_SEC);
    }
    FL_TRY(poll_watch(s));
    nanosleep(&t, NULL);
    fl_watch_waited(s->by, AGAIN);
    return FL_OK;
}

/* The server answers with a status that will not change. One that is just
 * ending says EIO: another job may follow. */
static bool is_denied(const answer *a)
{
    return a->end == FL_RPC_DENIED && a->code != FL_EIO;
}

/* A server that has answered, and then refuses connections for some seconds,
 * has ended. */
static fl_err check_gone(setup *s, int server, const answer *a)
{
    char name[160], text[FL_GONE_TEXT];
    s->heard |= a->end == FL_RPC_OK;
    if (!a->no_listener)
        s->refused = 0;
    else if (s->heard && fl_job_gone(&s->job, &s->refused, time_now()))
        return fl_fail(FL_EIO, "%s %s",
                       fl_job_server(&s->job, server, name, sizeof name),
                       fl_job_gone_text(&s->job, text));
    return FL_OK;
}

/* Send a part until it is answered. *here: the server has the job. *again: it
 * wants to be asked later. */
static fl_err put_part(setup *s, int server, int64_t seq, int64_t count,
                       fl_parcel *p, bool *here, bool *again)
{
    for (;;) {
        answer a;
        init_answer(&a);
        fl_err err = send_part(s, server, seq, count, p, &a);
        const fl_msg_kind kind = a.msg.kind;
        char why[512];
        snprintf(why, sizeof why, "%s", a.msg.text ? a.msg.text : a.why);
        *here = kind == FL_MSG_ACK && a.msg.round == 1;
        *again = kind == FL_MSG_PARKED;
        if (!err && (kind == FL_MSG_ERROR || is_denied(&a)))
            err = fail_refused(s, server, &a);
        if (!err)
            err = check_gone(s, server, &a);
        fini_answer(&a);
        if (err || kind == FL_MSG_ACK)
            return err;
        FL_TRY(pause_setup(s, server, why));
        if (*again)
            return FL_OK;
    }
}

/* --- what is brought --- */

typedef FL_VEC(fl_parcel *) parcels;

/* The start value of a variable that was cut. */
static fl_err find_start(const fl_setup *o, const fl_var *v,
                         const fl_tensor **out)
{
    const fl_value *x = fl_scope_find(o->scope, v->name);
    if (!x || x->kind != FL_LOD_TENSOR || !x->tensor.data ||
        x->tensor.dtype != v->dtype ||
        fl_tensor_numel(&x->tensor) != fl_shape_numel(&v->shape))
        return fl_fail(
            FL_EINVAL,
            "setup: parameter \"%s\" has no start value of its shape on this "
            "trainer, which brings the values to the servers",
            v->name);
    *out = &x->tensor;
    return FL_OK;
}

static void add_slices(parcels *to, const fl_piece *k, const fl_tensor *whole)
{
    const size_t one = fl_dtype_size(whole->dtype);
    const int64_t all = fl_shape_numel(&k->shape);
    const int64_t most = PART_BYTES / (int64_t)one;
    const fl_tensor t =
        fl_tensor_view(whole->dtype, &k->shape,
                       (const char *)whole->data + (size_t)k->first * one);
    for (int64_t at = 0, n; at < all; at += n) {
        n = all - at < most ? all - at : most;
        if (to->at[to->n - 1]->size >= PART_BYTES)
            fl_push(to, fl_parcel_new());
        fl_parcel_add_slice(to->at[to->n - 1], k->name, &t, at, n);
    }
}

static fl_err add_starts(const fl_setup *o, int server, parcels *to)
{
    const fl_block *b = fl_program_block(o->main, 0);
    for (int i = 0; i < o->place->n_pieces; i++) {
        const fl_piece *k = &o->place->pieces[i];
        const fl_var *v = fl_block_var(b, k->var);
        const fl_tensor *t = NULL;
        if (k->server != server || k->first == FL_BY_ID || !v || !v->param)
            continue;
        FL_TRY(find_start(o, v, &t));
        add_slices(to, k, t);
    }
    return FL_OK;
}

static fl_err bring_parts(setup *s, int server, const parcels *parts,
                          bool *here)
{
    for (int64_t i = 0; i < parts->n && !*here; i++) {
        bool again = false;
        FL_TRY(
            put_part(s, server, i + 1, parts->n, parts->at[i], here, &again));
        if (again)
            return FL_OK; /* another process brings a job */
    }
    return FL_OK;
}

static fl_err encode_programs(const fl_setup *o, int server, void *bytes[2],
                              size_t size[2])
{
    FL_TRY(fl_program_encode(o->programs[server], &bytes[0], &size[0]));
    return fl_program_encode(o->startups[server], &bytes[1], &size[1]);
}

static fl_err bring_job(setup *s, int server, bool *here)
{
    const fl_setup *o = s->of;
    void *bytes[2] = {NULL, NULL};
    size_t size[2];
    parcels parts = {0};
    fl_str list = {0};
    for (int i = 0; i < o->place->n_servers; i++)
        fl_str_printf(&list, "%s%s", i ? "," : "", o->place->servers[i]);
    fl_err err = encode_programs(o, server, bytes, size);
    if (!err) {
        fl_parcel *first = fl_parcel_new();
        fl_parcel_add_bytes(first, "servers", list.at, list.n);
        fl_parcel_add_bytes(first, "program", bytes[0], size[0]);
        fl_parcel_add_bytes(first, "startup", bytes[1], size[1]);
        fl_push(&parts, first);
        fl_push(&parts, fl_parcel_new());
        err = add_starts(o, server, &parts);
    }
    if (!err)
        err = bring_parts(s, server, &parts, here);
    for (int64_t i = 0; i < parts.n; i++)
        fl_parcel_unref(parts.at[i]);
    fl_vec_fini(&parts);
    fl_mem_free(bytes[0]);
    fl_mem_free(bytes[1]);
    fl_str_fini(&list);
    return err;
}

/* --- all servers --- */

static fl_err set_up_server(setup *s, int server)
{
    bool here = false, again = false;
    s->refused = 0;
    s->heard = false;
    while (!here) {
        FL_TRY(put_part(s, server, 0, 0, NULL, &here, &again));
        if (!here && !again && s->of->programs)
            FL_TRY(bring_job(s, server, &here));
        else if (!here && !again)
            FL_TRY(pause_setup(s, server, "trainer 0 brings the program"));
    }
    return FL_OK;
}

static fl_err set_up_all(setup *s)
{
    fl_wait_opts opts = {.limit_ms = (s->job.start + FL_MS - 1) / FL_MS};
    if (s->by) {
        opts.poll = s->by->poll;
        opts.user = s->by->user;
    }
    FL_TRY(
        fl_wait_ports(s->of->place->n_servers, s->of->place->servers, &opts));
    for (int i = s->job.servers; i-- > 0;)
        FL_TRY(set_up_server(s, i));
    return FL_OK;
}

fl_err fl_setup_run(const fl_setup *of, const fl_watch *by)
{
    fl_job limits = {0};
    fl_entropy e = fl_entropy_real();
    char token[FL_JOB_TOKEN], host[64] = "?";
    fl_tls *tls;
    setup s = {.of = of, .by = by, .began = time_now()};
    FL_TRY(fl_job_limits(&limits));
    s.job = fl_placement_job(of->place, &limits);
    FL_TRY(fl_job_tls_read(&tls));
    FL_TRY(fl_rpc_new(
        &(fl_rpc_opts){.tls = tls, .token = fl_job_token(&s.job, token)},
        &s.rpc));
    gethostname(host, sizeof host - 1);
    snprintf(s.who, sizeof s.who, "%s:%ld", host, (long)getpid());
    s.session = (fl_id){e.draw(&e) | 1, e.draw(&e)};
    fl_job_about(&s.job, &s.about);
    const fl_err err = set_up_all(&s);
    char why[512];
    snprintf(why, sizeof why, "%s", fl_errmsg());
    fl_rpc_free(s.rpc);
    fl_str_fini(&s.about);
    return err ? fl_fail(err, "%s", why) : FL_OK;
}
