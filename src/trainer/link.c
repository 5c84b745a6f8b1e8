/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - the network and the timer around the client of a trainer.
 *
 *     outbox --encode--> call --reply--> decode --lock--> client --> outbox
 *
 * Requests for rows go on a stream that stays open; each server has one. Any
 * other request has a call of its own, so that rows do not wait behind large
 * messages. A request that the client repeats goes on a new call, or is a new
 * word on the stream, while the old one may still be answered (PARKED: a sign
 * of life). RENEW goes on the open call; each session has one.
 *
 * Easy to get wrong: a request that was answered may still have an older call
 * that has not ended, and that call reads the memory that was lent. */
#include "trainer/link.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "base/pool.h"
#include "cluster/ports.h"
#include "cluster/tls.h"
#include "wire/codec.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TICK  (250 * FL_MS) /* between two ticks of the client */
#define PAUSE (200 * FL_MS) /* between two checks for Ctrl-C during a wait */

enum {
    REPORT_ROWS = 3 /* waits that a report names; the others are counted */
};

/* The connection to one server. That to server 0 also leads to the coordinator.
 */
typedef struct connection {
    fl_link *link;
    const char *address;
    fl_rpc_peer *peer;
    uint64_t stream;    /* number of the stream's call in net/ */
    uint64_t stream_id; /* what callbacks of the stream get; 0: none is open */
} connection;

/* A call that has not ended. */
typedef struct pending {
    uint64_t id;     /* number that the call's callback gets; 0: no call */
    uint64_t call;   /* number of the call in net/ */
    uint64_t stream; /* stream_id of the stream that it is on; 0: none */
    fl_peer to;
    fl_msg_kind kind;
    uint64_t tag; /* number of the request in the client */
} pending;

/* A thread that waits. It is woken when its goal is reached, not by every
 * event: most events are acknowledgements that nobody waits for. */
typedef struct waiter {
    fl_goal reached;
    const void *of;
    pthread_cond_t woken;
    struct waiter *next;
} waiter;

struct fl_link {
    const fl_placement *place;
    const fl_job *job;
    fl_link_events events;
    fl_entropy entropy;
    fl_app app;
    connection *connections;
    fl_rpc *rpc; /* NULL: not connected yet */
    fl_pool *pool;
    fl_group ticker;
    pthread_mutex_t
        connect_lock; /* held while connecting; taken before `lock` */

    pthread_condattr_t monotonic;
    fl_arena *arena; /* of a message that is read: the network's thread alone */

    pthread_mutex_t lock;
    waiter *waiters;
    pthread_cond_t ended; /* `ending` is set: the ticker stops */
    bool ending;
    fl_client *client;
    fl_outbox out;
    fl_str notes; /* log lines that are written when the lock is free */
    FL_VEC(pending) calls;
    uint64_t ids;       /* the newest pending.id */
    pending open;       /* the open call */
    fl_id open_session; /* the session of the open call */
    bool asking_why;    /* a Why request to the coordinator is pending */
    char trouble[128];  /* last network error since the last report, or "" */
    int64_t reported;   /* when any thread last reported its wait, ns */
    int64_t sessions_lost;
    bool over;     /* the client has ended */
    int over_code; /* exit code; 0: it left without an error */
    char over_why[512];
};

int64_t fl_link_now(void)
{
    return fl_clock_now(fl_clock_real());
}

void fl_link_lock(fl_link *l)
{
    pthread_mutex_lock(&l->lock);
}

void fl_link_unlock(fl_link *l)
{
    char *notes = l->notes.n ? fl_str_take(&l->notes) : NULL;
    pthread_mutex_unlock(&l->lock);
    if (!notes)
        return;
    for (char *line = notes, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        FL_WARN("%s", line);
    }
    fl_mem_free(notes);
}

static void sleep_on(fl_link *l, pthread_cond_t *on, int64_t ns)
{
    const int64_t end = fl_link_now() + ns;
    const struct timespec at = {end / FL_SEC, end % FL_SEC};
    pthread_cond_timedwait(on, &l->lock, &at);
}

void fl_link_wake(fl_link *l)
{
    for (waiter *w = l->waiters; w; w = w->next)
        if (l->over || w->reached(w->of))
            pthread_cond_signal(&w->woken);
}

/* --- callbacks of the client --- */

static void on_values(void *self, int server, const fl_msg *m)
{
    fl_link *l = self;
    l->events.values(l->events.self, server, m);
}

static void on_ready(void *self, int rank, int64_t round)
{
}

static void on_fenced(void *self, const char *why)
{
    fl_link *l = self;
    l->sessions_lost++;
    l->events.fenced(l->events.self);
}

static void on_over(void *self, int code, const char *why)
{
    fl_link *l = self;
    l->over = true;
    l->over_code = code;
    snprintf(l->over_why, sizeof l->over_why, "%s", why);
}

/* --- pending calls --- */

static int64_t find_call(const fl_link *l, uint64_t id)
{
    int64_t i = l->calls.n - 1;
    while (i >= 0 && l->calls.at[i].id != id)
        i--;
    return i;
}

/* The oldest request with this tag on a stream; -1: there is none. */
static int64_t find_word(const fl_link *l, uint64_t stream, uint64_t tag)
{
    for (int64_t i = 0; i < l->calls.n; i++)
        if (l->calls.at[i].stream == stream && l->calls.at[i].tag == tag)
            return i;
    return -1;
}

static bool has_call_of(const fl_link *l, uint64_t tag)
{
    for (int64_t i = 0; i < l->calls.n; i++)
        if (l->calls.at[i].tag == tag)
            return true;
    return false;
}

static connection *connection_to(fl_link *l, fl_peer to)
{
    return &l->connections[to.kind == FL_PEER_COORD ? 0 : to.index];
}

/* --- replies to calls --- */

static void feed_client(fl_link *l, fl_peer from, const fl_msg *m)
{
    if (m->kind == FL_MSG_GRANT)
        fl_failpoint_hit("join.granted");
    fl_client_recv(l->client, from, m, fl_link_now());
}

/* To be called after every event of the client: send its messages, wake waits.
 */
static void end_event(fl_link *l)
{
    fl_link_flush(l);
    fl_link_wake(l);
}

/* The peer answered with an RPC status. If it says that the request can never
 * succeed, the client gets an ERROR; otherwise it repeats the request. */
static void deny_call(fl_link *l, const pending *c, fl_err code,
                      const char *text)
{
    const bool never = code == FL_EPROTO || code == FL_EINVAL ||
                       code == FL_ENOENT || code == FL_ESHAPE;
    if (!never) {
        fl_client_broken(l->client, c->tag, fl_link_now());
        return;
    }
    feed_client(l, c->to,
                &(fl_msg){.kind = FL_MSG_ERROR,
                          .job = l->job->id,
                          .tag = c->tag,
                          .code = (int)code,
                          .text = text});
}

/* A call has ended, well or badly: remember a fault of the network for the next
 * report, and tell the client if nobody listens at the peer's address. */
static void note_trouble(fl_link *l, fl_peer to, const fl_rpc_reply *reply)
{
    const char *what = reply->end == FL_RPC_REFUSED ? "refuses connections"
                       : reply->end == FL_RPC_BROKEN
                           ? "has broken the connection"
                           : NULL;
    if (what)
        snprintf(l->trouble, sizeof l->trouble, "%s %s",
                 connection_to(l, to)->address, what);
    if (reply->no_listener)
        fl_client_refused(l->client, to, fl_link_now());
}

/* A call has ended. m is its decoded answer; `bad` is NULL or says why it could
 * not be decoded. */
static void end_call(fl_link *l, const pending *c, const fl_rpc_reply *reply,
                     fl_err bad, const fl_msg *m)
{
    note_trouble(l, c->to, reply);
    if (reply->end == FL_RPC_OK && !bad)
        feed_client(l, c->to, m);
    else if (reply->end == FL_RPC_OK)
        deny_call(l, c, bad, fl_errmsg());
    else if (reply->end == FL_RPC_DENIED)
        deny_call(l, c, reply->code, reply->text);
    else if (!has_call_of(l, c->tag))
        fl_client_broken(l->client, c->tag, fl_link_now());
}

static void on_reply(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    const connection *from = self;
    fl_link *l = from->link;
    fl_msg m = {0};
    fl_err bad = FL_OK;
    if (reply->end == FL_RPC_OK)
        bad = fl_msg_decode(from->address, reply->packet, l->arena, &m);
    fl_link_lock(l);
    const int64_t i = find_call(l, id);
    const pending call = l->calls.at[i];
    fl_remove(&l->calls, i);
    if (!l->ending)
        end_call(l, &call, reply, bad, &m);
    end_event(l);
    fl_link_unlock(l);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_reset(l->arena);
}

/* --- streams --- */

/* The stream has ended, or cannot go on: so have the requests on it. */
static void end_stream(fl_link *l, connection *c, uint64_t id,
                       const fl_rpc_reply *reply)
{
    if (c->stream_id == id)
        c->stream_id = 0;
    for (int64_t i = l->calls.n - 1; i >= 0; i--) {
        const pending call = l->calls.at[i];
        if (call.stream != id)
            continue;
        fl_remove(&l->calls, i);
        if (!l->ending)
            end_call(l, &call, reply, FL_OK, NULL);
    }
}

static void on_stream_end(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    connection *from = self;
    fl_rpc_reply broken = *reply;
    if (broken.end == FL_RPC_OK) /* the server has closed it */
        broken.end = FL_RPC_BROKEN;
    fl_link_lock(from->link);
    end_stream(from->link, from, id, &broken);
    end_event(from->link);
    fl_link_unlock(from->link);
}

static void on_stream_word(void *self, uint64_t id, const fl_packet *packet)
{
    connection *from = self;
    fl_link *l = from->link;
    fl_msg m = {0};
    const fl_err bad = fl_msg_decode(from->address, packet, l->arena, &m);
    const fl_rpc_reply denied = {FL_RPC_DENIED, bad, fl_errmsg(), NULL};
    fl_link_lock(l);
    const int64_t i = bad ? -1 : find_word(l, id, m.tag);
    if (bad) { /* nobody knows which request this answers */
        fl_rpc_cancel(l->rpc, from->stream);
        end_stream(l, from, id, &denied);
    } else if (i >= 0) {
        const fl_peer to = l->calls.at[i].to;
        fl_remove(&l->calls, i);
        if (!l->ending)
            feed_client(l, to, &m);
    }
    end_event(l);
    fl_link_unlock(l);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_reset(l->arena);
}

static void send_word(fl_link *l, connection *to, pending *c, fl_packet *packet)
{
    if (!to->stream_id) {
        to->stream_id = ++l->ids;
        to->stream =
            fl_rpc_open(l->rpc, to->peer, FL_METHOD_STREAM, on_stream_word,
                        (fl_rpc_done){on_stream_end, to, to->stream_id});
    }
    c->stream = to->stream_id;
    fl_rpc_say(l->rpc, to->stream, packet);
}

/* Whether a request asks for rows, whose answer is small. */
static bool asks_for_rows(const fl_msg *m)
{
    const fl_parcel *p = fl_parcel_of(m->blob);
    return m->kind == FL_MSG_PULL && p && p->n && p->item[0].rows.size;
}

/* --- the open call --- */

static void on_open_message(void *self, uint64_t id, const fl_packet *p)
{
    const connection *from = self;
    fl_link *l = from->link;
    fl_msg m = {0};
    const fl_err bad = fl_msg_decode(from->address, p, l->arena, &m);
    fl_link_lock(l);
    if (!bad && id == l->open.id && !l->ending)
        feed_client(l, l->open.to, &m);
    end_event(l);
    fl_link_unlock(l);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_reset(l->arena);
}

static void on_open_end(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    fl_link *l = ((const connection *)self)->link;
    fl_link_lock(l);
    if (id == l->open.id) {
        l->open.id = 0;
        if (!l->ending) {
            note_trouble(l, l->open.to, reply);
            fl_client_broken(l->client, 0, fl_link_now());
        }
    }
    end_event(l);
    fl_link_unlock(l);
}

static void close_open_call(fl_link *l)
{
    if (l->open.id)
        fl_rpc_cancel(l->rpc, l->open.call);
    l->open.id = 0;
}

/* Send RENEW on the open call. Each session has its own open call, whose end
 * tells the coordinator at once that this process has died. */
static void send_renew(fl_link *l, const fl_envelope *e)
{
    connection *first = &l->connections[0];
    const fl_msg *m = &e->msg;
    if (!fl_id_same(l->open_session, m->session))
        close_open_call(l);
    if (!l->open.id) {
        l->open = (pending){.id = ++l->ids, .to = e->to, .kind = FL_MSG_RENEW};
        l->open_session = m->session;
        l->open.call = fl_rpc_open(
            l->rpc, first->peer, fl_msg_method(m->kind), on_open_message,
            (fl_rpc_done){on_open_end, first, l->open.id});
    }
    fl_rpc_say(l->rpc, l->open.call, fl_msg_encode(m));
}

bool fl_link_has_session(const fl_link *l)
{
    return l->open.id && !l->over;
}

/* --- sending --- */

static void send_request(fl_link *l, const fl_envelope *e)
{
    connection *to = connection_to(l, e->to);
    const fl_msg *m = &e->msg;
    pending c = {.id = ++l->ids, .to = e->to, .kind = m->kind, .tag = m->tag};
    if (asks_for_rows(m))
        send_word(l, to, &c, fl_msg_encode(m));
    else
        c.call = fl_rpc_call(l->rpc, to->peer, fl_msg_method(m->kind),
                             fl_msg_encode(m), l->job->reach,
                             (fl_rpc_done){on_reply, to, c.id});
    fl_push(&l->calls, c);
}

void fl_link_flush(fl_link *l)
{
    for (int64_t i = 0; i < l->out.out.n && !l->ending; i++) {
        const fl_envelope *e = &l->out.out.at[i];
        if (e->msg.kind == FL_MSG_RENEW)
            send_renew(l, e);
        else
            send_request(l, e);
    }
    for (int64_t i = 0; i < l->out.note.n; i++)
        fl_str_printf(&l->notes, "%s\n", l->out.note.at[i]);
    fl_outbox_clear(&l->out);
}

void fl_link_call_coordinator(fl_link *l, fl_msg_kind kind, fl_blob blob,
                              int64_t limit, fl_rpc_done done)
{
    const fl_msg m = {.kind = kind,
                      .job = l->job->id,
                      .session = l->open_session,
                      .blob = blob};
    fl_rpc_call(l->rpc, l->connections[0].peer, fl_msg_method(kind),
                fl_msg_encode(&m), limit, done);
}

/* --- reports of long waits --- */

/* Append the first few rows of a table of waits; only rows that begin with
 * `start`. */
static void join_rows(const char *rows, const char *start, fl_str *line)
{
    int n = 0;
    for (const char *end; (end = strchr(rows, '\n')); rows = end + 1)
        if (fl_starts_with(rows, start) && n++ < REPORT_ROWS)
            fl_str_printf(line, "%s%.*s", n > 1 ? "; " : "", (int)(end - rows),
                          rows);
    if (n > REPORT_ROWS)
        fl_str_printf(line, "; and %d more", n - REPORT_ROWS);
}

static void on_why(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    const connection *from = self;
    fl_link *l = from->link;
    fl_arena *arena = fl_arena_new();
    const char *rows = "";
    fl_str line = {0};
    if (reply->end == FL_RPC_OK &&
        !fl_why_decode(from->address, reply->packet, arena, &rows))
        join_rows(rows, "coordinator waits", &line);
    fl_link_lock(l);
    l->asking_why = false;
    if (line.n)
        fl_str_printf(&l->notes, "%s\n", line.at);
    fl_link_unlock(l);
    fl_str_fini(&line);
    fl_arena_free(arena);
}

/* Ask the coordinator what it waits for. The answer is logged. */
static void ask_why(fl_link *l)
{
    connection *first = &l->connections[0];
    if (l->asking_why)
        return;
    l->asking_why = true;
    fl_rpc_call(l->rpc, first->peer, FL_METHOD_WHY, fl_packet_new(),
                l->job->call, (fl_rpc_done){on_why, first, 0});
}

/* A line that says whom the client waits for; NULL: for nobody. */
static char *report_waits(fl_link *l)
{
    fl_str rows = {0}, line = {0};
    fl_client_waits(l->client, fl_link_now(), &rows);
    join_rows(rows.at ? rows.at : "", "", &line);
    if (l->trouble[0])
        fl_str_printf(&line, "; %s", l->trouble);
    l->trouble[0] = 0;
    fl_str_fini(&rows);
    ask_why(l);
    return line.n ? fl_str_take(&line) : NULL;
}

/* --- waits --- */

static fl_err fail_over(const fl_link *l)
{
    return fl_fail(fl_client_error(l->client), "%s", l->over_why);
}

/* With the lock released: log the line, free it, and poll the watch. */
static fl_err poll_watch(fl_link *l, const fl_watch *by, char *line)
{
    fl_link_unlock(l);
    if (line)
        FL_INFO("%s", line);
    fl_mem_free(line);
    const bool stop = by && by->poll && by->poll(by->user);
    fl_link_lock(l);
    return stop ? fl_fail(FL_EINTR, "the wait for servers was interrupted")
                : FL_OK;
}

static fl_err wait_as(fl_link *l, waiter *w, const fl_watch *by, int64_t until)
{
    const int64_t began = fl_link_now(), stall = l->job->stall;
    int64_t polled = began, counted = began;
    while (!w->reached(w->of)) {
        if (l->over)
            return fail_over(l);
        sleep_on(l, &w->woken, PAUSE);
        const int64_t now = fl_link_now();
        fl_watch_waited(by, now - counted);
        counted = now;
        if (until && now >= until)
            return fl_fail(FL_ETIMEOUT, "no server answered within %.0f s",
                           (double)(until - began) / (double)FL_SEC);
        if (now - polled < PAUSE)
            continue;
        polled = now;
        const bool report = now - began >= stall && now - l->reported >= stall;
        l->reported = report ? now : l->reported;
        FL_TRY(poll_watch(l, by, report ? report_waits(l) : NULL));
    }
    return FL_OK;
}

static void remove_waiter(fl_link *l, const waiter *w)
{
    waiter **at = &l->waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
}

fl_err fl_link_wait(fl_link *l, fl_goal reached, const void *of,
                    const fl_watch *by, int64_t until)
{
    if (reached(of))
        return FL_OK;
    waiter w = {.reached = reached, .of = of, .next = l->waiters};
    pthread_cond_init(&w.woken, &l->monotonic);
    l->waiters = &w;
    const fl_err err = wait_as(l, &w, by, until);
    remove_waiter(l, &w);
    pthread_cond_destroy(&w.woken);
    return err;
}

static bool is_ready(const void *link)
{
    const fl_link *l = link;
    return fl_client_now(l->client) == FL_CLIENT_READY;
}

fl_err fl_link_wait_ready(fl_link *l, const fl_watch *by)
{
    return fl_link_wait(l, is_ready, l, by, 0);
}

static bool has_no_pushes(const void *link)
{
    const fl_link *l = link;
    for (int64_t i = 0; i < l->calls.n; i++)
        if (l->calls.at[i].kind == FL_MSG_PUSH)
            return false;
    return true;
}

/* The answers of the remaining calls are not needed: their requests have been
 * repeated and answered, or belong to a lost session. */
fl_err fl_link_end_pushes(fl_link *l, const fl_watch *by)
{
    for (int64_t i = 0; i < l->calls.n; i++)
        if (l->calls.at[i].kind == FL_MSG_PUSH)
            fl_rpc_cancel(l->rpc, l->calls.at[i].call);
    return fl_link_wait(l, has_no_pushes, l, by, 0);
}

static bool is_over(const void *link)
{
    return ((const fl_link *)link)->over;
}

/* The open call is closed here, not when the link ends: servers end as soon as
 * no trainer has one, and this process may live on. */
fl_err fl_link_leave(fl_link *l, const fl_watch *by, int code, const char *why,
                     int64_t limit)
{
    const bool was_over = l->over; /* a wait has returned its error */
    const int64_t now = fl_link_now();
    fl_client_leave(l->client, code, why, now);
    fl_link_flush(l);
    FL_TRY(fl_link_wait(l, is_over, l, by, limit ? now + limit : 0));
    close_open_call(l);
    return !code && !was_over && l->over_code ? fail_over(l) : FL_OK;
}

/* --- the timer --- */

static void run_ticker(void *self)
{
    fl_link *l = self;
    fl_link_lock(l);
    while (!l->ending) {
        sleep_on(l, &l->ended, TICK);
        if (!l->ending)
            fl_client_tick(l->client, fl_link_now());
        end_event(l);
        fl_link_unlock(l); /* logs the notes */
        fl_link_lock(l);
    }
    fl_link_unlock(l);
}

/* --- beginning and end --- */

fl_link *fl_link_new(const fl_placement *place, const fl_job *job,
                     const fl_link_events *events)
{
    fl_link *l = fl_mem_alloc(sizeof *l);
    l->place = place;
    l->job = job;
    l->events = *events;
    l->entropy = fl_entropy_real();
    l->app =
        (fl_app){l, fl_keeper_parcels, on_values, on_ready, on_fenced, on_over};
    l->connections =
        fl_mem_alloc((size_t)job->servers * sizeof *l->connections);
    for (int i = 0; i < job->servers; i++)
        l->connections[i] =
            (connection){.link = l, .address = place->servers[i]};
    l->arena = fl_arena_new();
    fl_outbox_init(&l->out);
    pthread_mutex_init(&l->connect_lock, NULL);
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&l->monotonic);
    pthread_condattr_setclock(&l->monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->ended, &l->monotonic);
    return l;
}

static void disconnect_link(fl_link *l)
{
    fl_link_lock(l);
    l->ending = true;
    pthread_cond_broadcast(&l->ended);
    fl_link_unlock(l);
    fl_pool_free(l->pool);
    fl_rpc_free(l->rpc);
    fl_client_free(l->client);
}

void fl_link_free(fl_link *l)
{
    if (l->rpc)
        disconnect_link(l);
    fl_vec_fini(&l->calls);
    fl_str_fini(&l->notes);
    fl_outbox_fini(&l->out);
    fl_arena_free(l->arena);
    fl_mem_free(l->connections);
    pthread_cond_destroy(&l->ended);
    pthread_condattr_destroy(&l->monotonic);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->connect_lock);
    fl_mem_free(l);
}

static fl_err wait_for_servers(const fl_link *l, const fl_watch *by)
{
    fl_wait_opts opts = {.limit_ms = (l->job->start + FL_MS - 1) / FL_MS};
    if (by) {
        opts.poll = by->poll;
        opts.user = by->user;
    }
    const int64_t since = fl_link_now();
    const fl_err err =
        fl_wait_ports(l->place->n_servers, l->place->servers, &opts);
    fl_watch_waited(by, fl_link_now() - since);
    return err;
}

static void start_client(fl_link *l)
{
    char host[64] = "?", who[96];
    gethostname(host, sizeof host - 1);
    snprintf(who, sizeof who, "%s:%ld", host, (long)getpid());
    for (int i = 0; i < l->job->servers; i++)
        l->connections[i].peer =
            fl_rpc_peer_at(l->rpc, l->connections[i].address);
    fl_link_lock(l);
    l->client = fl_client_new(l->job, &l->app, l->place->trainer_id, who,
                              &l->entropy, &l->out);
    fl_client_start(l->client, fl_link_now());
    end_event(l);
    fl_link_unlock(l);
}

static fl_err start_network(fl_link *l)
{
    char token[FL_JOB_TOKEN];
    fl_tls *tls;
    FL_TRY(fl_job_tls_read(&tls));
    fl_err err = fl_pool_new("trainer", 1, &l->pool);
    if (err)
        fl_tls_free(tls);
    else
        err = fl_rpc_new(
            &(fl_rpc_opts){.token = fl_job_token(l->job, token), .tls = tls},
            &l->rpc);
    if (err) {
        fl_pool_free(l->pool);
        l->pool = NULL;
        return err;
    }
    start_client(l);
    fl_pool_submit(l->pool, &l->ticker, run_ticker, l);
    return FL_OK;
}

fl_err fl_link_connect(fl_link *l, const fl_watch *by)
{
    fl_err err = FL_OK;
    pthread_mutex_lock(&l->connect_lock);
    if (!l->rpc)
        err = wait_for_servers(l, by);
    if (!err && !l->rpc)
        err = start_network(l);
    pthread_mutex_unlock(&l->connect_lock);
    return err;
}

bool fl_link_is_connected(const fl_link *l)
{
    return l->client;
}

fl_client *fl_link_client(const fl_link *l)
{
    return l->client;
}

int64_t fl_link_fences(const fl_link *l)
{
    return l->sessions_lost;
}
