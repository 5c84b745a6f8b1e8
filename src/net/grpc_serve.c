/* grpc_serve.c - requests that come in.
 *
 * Every request comes through one catch-all, known method or not: gRPC lets
 * calls of methods that nobody asked for wait forever. The message is read only
 * after the method and the number of calls were found to be right; what a
 * stranger's connection may send, and how long its calls may last, is limited
 * (listener.h). */
#include "net/grpc_in.h"

#include "base/clock.h"
#include "net/port.h"

#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdio.h>

enum {
    WAITING = 256, /* requests gRPC may hand over before we ask for more; what
                      comes beyond is told after later things */
    CALLS = 1024
};
#define SECOND        INT64_C(1000000000)
#define STRANGER_TIME (5 * SECOND)   /* of a call, all in all */
#define MEMBER_TIME   (600 * SECOND) /* until its message is complete */

static const char health[] = "/grpc.health.v1.Health/Check";

static void arm(fl_rpc *r);

static const fl_rpc_method *find_method(const fl_rpc *r, const grpc_slice *name)
{
    for (const fl_rpc_method *m = r->opts.methods; m && m->name; m++)
        if (!grpc_slice_str_cmp(*name, m->name))
            return m;
    return NULL;
}

static void refuse_unknown(fl_grpc_call *c)
{
    fl_str why = {0};
    const grpc_slice *name = &c->details.method;
    size_t n = GRPC_SLICE_LENGTH(*name);
    fl_str_printf(&why, "no method %.*s here; there are ",
                  (int)(n < 200 ? n : 200),
                  (const char *)GRPC_SLICE_START_PTR(*name));
    for (const fl_rpc_method *m = c->rpc->opts.methods; m && m->name; m++)
        fl_str_printf(&why, "%s, ", m->name);
    fl_str_add(&why, health);
    fl_grpc_end(c, GRPC_STATUS_UNIMPLEMENTED, why.at);
    fl_str_fini(&why);
}

/* Has the caller shown the token? */
static bool shows_token(const fl_grpc_call *c)
{
    const char *token = c->rpc->opts.token;
    for (size_t i = 0; token && i < c->head.count; i++)
        if (!grpc_slice_str_cmp(c->head.metadata[i].key, FL_RPC_TOKEN))
            return !grpc_slice_str_cmp(c->head.metadata[i].value, token);
    return false;
}

/* gRPC calls a connection that was accepted here "fd:12". It closes a socket
 * after the last of its calls has ended, so the number is still this call's. */
static uint64_t find_connection(fl_grpc_call *c)
{
    char *uri = grpc_call_get_peer(c->grpc);
    int fd = -1;
    if (sscanf(uri, "fd:%d", &fd) != 1)
        fd = -1;
    gpr_free(uri);
    return c->rpc->listener ? fl_listener_name(c->rpc->listener, fd) : 0;
}

static void refuse_one_more(fl_grpc_call *c, const char *which)
{
    fl_str why = {0};
    fl_str_printf(&why, "%s are being served, no more are taken", which);
    fl_grpc_end(c, GRPC_STATUS_RESOURCE_EXHAUSTED, why.at);
    fl_str_fini(&why);
}

/* A stranger's call is counted by its connection, a member's by the server:
 * nobody takes the places of others. */
static bool count_in(fl_grpc_call *c)
{
    fl_rpc *r = c->rpc;
    char which[32];
    int most = r->opts.max_calls ? r->opts.max_calls : CALLS;
    c->entered = !r->listener || fl_listener_enter(r->listener, c->connection);
    if (!c->entered) {
        refuse_one_more(c, "as many calls as a stranger may have");
        return false;
    }
    if (!c->method) /* health is told to members however many calls there are */
        return true;
    if (r->listener &&
        fl_listener_standing(r->listener, c->connection) != FL_MEMBER)
        return true;
    pthread_mutex_lock(&r->lock);
    c->counted = r->serving < most;
    r->serving += c->counted;
    pthread_mutex_unlock(&r->lock);
    snprintf(which, sizeof which, "%d calls", most);
    if (!c->counted)
        refuse_one_more(c, which);
    return c->counted;
}

void fl_grpc_count_out(fl_grpc_call *c)
{
    if (c->entered && c->rpc->listener)
        fl_listener_leave(c->rpc->listener, c->connection);
    c->entered = false;
}

static void await_close(fl_grpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &c->broken;
    fl_grpc_start(c, &op, 1, &c->closed);
}

/* Is it served? If not it was refused. */
static bool admit(fl_grpc_call *c)
{
    bool checks = !grpc_slice_str_cmp(c->details.method, health);
    c->method = find_method(c->rpc, &c->details.method);
    c->open = c->method && c->method->open;
    c->connection = find_connection(c);
    if (c->rpc->listener && shows_token(c))
        fl_listener_trust(c->rpc->listener, c->connection);
    if (!c->method && !checks) {
        refuse_unknown(c);
        return false;
    }
    return count_in(c);
}

static void begin(fl_grpc_call *c)
{
    if (c->open) {
        fl_grpc_pump(c); /* so that the other side knows */
        c->heard_of = true;
        c->method->heard(c->rpc->opts.self, c->method, c->id, NULL);
    }
    fl_grpc_listen_on(c);
}

/* It is counted before its end can be heard of, which counts it out. */
static void on_arrived(void *self, bool ok)
{
    fl_grpc_call *c = self;
    if (ok) {
        arm(c->rpc);
        c->came = fl_clock_now(fl_clock_real());
        c->unread = true;
        fl_grpc_enter(c);
        bool served = admit(c);
        await_close(c);
        if (served)
            begin(c);
    }
    fl_grpc_release(c);
}

static void arm(fl_rpc *r)
{
    fl_grpc_call *c = fl_grpc_call_new(r, false);
    c->arrived = (fl_grpc_tag){on_arrived, c};
    if (grpc_server_request_call(r->server, &c->grpc, &c->details, &c->head,
                                 r->queue, r->queue, &c->arrived))
        fl_grpc_let_be(c);
}

static void answer_health(fl_grpc_call *c)
{
    unsigned char word[2] = {0x08, 2}; /* HealthCheckResponse.status */
    pthread_mutex_lock(&c->rpc->lock);
    word[1] = c->rpc->healthy ? 1 : 2; /* SERVING, NOT_SERVING */
    pthread_mutex_unlock(&c->rpc->lock);
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, word, sizeof word);
    fl_grpc_say(c, p, true);
}

/* Too many answers wait: the other side does not read them. */
static bool pause_reading(fl_grpc_call *c)
{
    pthread_mutex_lock(&c->rpc->lock);
    const bool pause = c->words.n - c->said >= FL_GRPC_WAITING;
    c->paused = pause;
    pthread_mutex_unlock(&c->rpc->lock);
    return pause;
}

void fl_grpc_serve_word(fl_grpc_call *c, grpc_byte_buffer *b)
{
    if (!b && c->open) { /* the other side will say no more */
        fl_grpc_end(c, GRPC_STATUS_OK, "");
        return;
    }
    if (!b) {
        fl_grpc_end(c, GRPC_STATUS_INVALID_ARGUMENT,
                    "the request has no message");
        return;
    }
    fl_packet *p = fl_grpc_unpack(c->rpc, b);
    pthread_mutex_lock(&c->rpc->lock);
    c->unread = false;
    pthread_mutex_unlock(&c->rpc->lock);
    if (c->method) {
        c->heard_of = true;
        c->method->heard(c->rpc->opts.self, c->method, c->id, p);
    } else {
        answer_health(c);
    }
    fl_packet_unref(p);
    if (c->open && !pause_reading(c))
        fl_grpc_listen_on(c);
}

void fl_grpc_hangup(fl_grpc_call *c)
{
    const fl_rpc_opts *o = &c->rpc->opts;
    if (c->heard_of && (c->open || !c->ended) && o->hangup)
        o->hangup(o->self, c->id);
}

static void on_stopped(void *self, bool ok)
{
    fl_rpc *r = self;
    pthread_mutex_lock(&r->lock);
    r->server_stopped = true;
    pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
}

/* --- listening --- */

static void take_socket(void *self, int fd)
{
    fl_rpc *r = self;
    grpc_server_add_channel_from_fd(r->server, fd, r->plain);
}

/* The queue has come to the tag: whatever was in it before was told. */
static void on_settled(void *self, bool ok)
{
    fl_rpc *r = self;
    fl_listener_settled(r->listener);
}

static void settle_queue(void *self)
{
    fl_rpc *r = self;
    fl_grpc_ring(r, &r->settled);
}

/* Why a call may not go on; NULL: it may. */
static const char *fault_of(fl_grpc_call *c, int64_t now)
{
    if (fl_listener_standing(c->rpc->listener, c->connection) != FL_MEMBER)
        return "a call of one that is no member of the job has 5 s";
    pthread_mutex_lock(&c->rpc->lock);
    const bool late = c->unread && now - c->came > MEMBER_TIME;
    pthread_mutex_unlock(&c->rpc->lock);
    return late ? "the message was not complete within ten minutes" : NULL;
}

static void end_late_call(fl_grpc_call *c, int64_t now)
{
    const char *why = fault_of(c, now);
    if (why)
        grpc_call_cancel_with_status(c->grpc, GRPC_STATUS_DEADLINE_EXCEEDED,
                                     why, NULL);
}

static void end_late_calls(void *self, int64_t now)
{
    fl_rpc *r = self;
    FL_VEC(fl_grpc_call *) old = {0};
    pthread_mutex_lock(&r->lock);
    for (int64_t i = 0; i < r->slots.n; i++) {
        fl_grpc_call *c = r->slots.at[i].call;
        if (!c || c->own || now - c->came <= STRANGER_TIME)
            continue;
        fl_grpc_hold(c);
        fl_push(&old, c);
    }
    pthread_mutex_unlock(&r->lock);
    for (int64_t i = 0; i < old.n; i++) {
        end_late_call(old.at[i], now);
        fl_grpc_let_be(old.at[i]);
    }
    fl_vec_fini(&old);
}

static void start_server(fl_rpc *r)
{
    r->stopped = (fl_grpc_tag){on_stopped, r};
    grpc_server_start(r->server);
    for (int i = 0; i < WAITING; i++)
        arm(r);
}

static void make_server(fl_rpc *r)
{
    fl_grpc_args args;
    r->server = grpc_server_create(fl_grpc_args_of(r, &args), NULL);
    grpc_server_register_completion_queue(r->server, r->queue, NULL);
    r->plain = grpc_insecure_server_credentials_create();
}

static void drop_server(fl_rpc *r)
{
    grpc_server_credentials_release(r->plain);
    grpc_server_destroy(r->server);
    r->server = NULL;
}

/* A path of the file system, whose owner says who may come. */
static fl_err serve_path(fl_rpc *r, const char *exact, int *port)
{
    make_server(r);
    *port = 0;
    if (!grpc_server_add_http2_port(r->server, exact, r->plain)) {
        drop_server(r);
        return fl_port_why(exact);
    }
    start_server(r);
    return FL_OK;
}

static fl_err serve_port(fl_rpc *r, const char *exact, int *port)
{
    const fl_listener_opts opts = {.shared = r->opts.held,
                                   .open = !r->opts.token,
                                   .take = take_socket,
                                   .tick = end_late_calls,
                                   .settle = settle_queue,
                                   .self = r};
    if (fl_listener_new(&opts, exact, port, &r->listener))
        return fl_port_why(exact);
    r->settled = (fl_grpc_tag){on_settled, r};
    make_server(r);
    start_server(r);
    return fl_listener_start(r->listener);
}

fl_err fl_rpc_listen(fl_rpc *r, const char *address, int *port)
{
    sigset_t old;
    fl_str exact = {0};
    if (r->server)
        return fl_fail(FL_EINVAL, "rpc: %s: this one listens already", address);
    FL_TRY(fl_port_resolve(address, &exact));
    fl_grpc_signals_off(&old);
    const fl_err err = fl_starts_with(exact.at, "unix:")
                           ? serve_path(r, exact.at, port)
                           : serve_port(r, exact.at, port);
    fl_grpc_signals_on(&old);
    fl_str_fini(&exact);
    return err;
}

fl_err fl_rpc_check(fl_rpc *r)
{
    return r->listener ? fl_listener_check(r->listener) : FL_OK;
}

void fl_rpc_healthy(fl_rpc *r, bool serving)
{
    pthread_mutex_lock(&r->lock);
    r->healthy = serving;
    pthread_mutex_unlock(&r->lock);
}

void fl_rpc_answer(fl_rpc *r, uint64_t call, fl_packet *p)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    if (!c) {
        fl_packet_unref(p);
        return;
    }
    fl_grpc_say(c, p, true);
    fl_grpc_let_be(c);
}

const char *fl_rpc_caller(fl_rpc *r, uint64_t call, char *buf, size_t size)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    snprintf(buf, size, "?");
    if (!c)
        return buf;
    if (r->listener)
        fl_listener_address(r->listener, c->connection, buf, size);
    fl_grpc_let_be(c);
    return buf;
}

void fl_rpc_trust(fl_rpc *r, uint64_t call)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    if (!c)
        return;
    if (r->listener)
        fl_listener_trust(r->listener, c->connection);
    fl_grpc_let_be(c);
}

fl_standing fl_rpc_standing(fl_rpc *r, uint64_t call)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    fl_standing s = FL_STRANGER;
    if (!c)
        return s;
    s = r->listener ? fl_listener_standing(r->listener, c->connection)
                    : FL_MEMBER;
    fl_grpc_let_be(c);
    return s;
}

void fl_rpc_refuse(fl_rpc *r, uint64_t call, fl_err code, const char *why)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    if (!c)
        return;
    fl_grpc_end(c, fl_grpc_status_of(code), why);
    fl_grpc_let_be(c);
}
