/* grpc_serve.c - requests that come in.
 *
 * Every request comes through one catch-all, known method or not: gRPC lets
 * calls of methods that nobody asked for wait forever. The message is read only
 * after the method and the number of calls were found to be right. */
#include "net/grpc_in.h"

#include "net/port.h"

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdio.h>

enum {
    WAITING = 4, /* requests gRPC may hand over before we ask for more */
    CALLS = 1024
};

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

/* Health is never refused, and never counted. */
static bool count_in(fl_grpc_call *c)
{
    fl_rpc *r = c->rpc;
    int most = r->opts.max_calls ? r->opts.max_calls : CALLS;
    pthread_mutex_lock(&r->lock);
    c->counted = r->serving < most;
    r->serving += c->counted;
    pthread_mutex_unlock(&r->lock);
    if (c->counted)
        return true;
    fl_str why = {0};
    fl_str_printf(&why, "%d calls are being served, no more are taken", most);
    fl_grpc_end(c, GRPC_STATUS_RESOURCE_EXHAUSTED, why.at);
    fl_str_fini(&why);
    return false;
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
    if (!c->method && !checks) {
        refuse_unknown(c);
        return false;
    }
    return checks || count_in(c);
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
    if (c->method) {
        c->heard_of = true;
        c->method->heard(c->rpc->opts.self, c->method, c->id, p);
    } else {
        answer_health(c);
    }
    fl_packet_unref(p);
    if (c->open)
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

/* The port that was bound; 0: none. */
static int bind_server(fl_rpc *r, const char *exact)
{
    fl_grpc_args args;
    grpc_server *s = grpc_server_create(fl_grpc_args_of(r, &args), NULL);
    grpc_server_register_completion_queue(s, r->queue, NULL);
    grpc_server_credentials *plain = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(s, exact, plain);
    grpc_server_credentials_release(plain);
    if (!port) {
        grpc_server_destroy(s);
        return 0;
    }
    r->stopped = (fl_grpc_tag){on_stopped, r};
    r->server = s;
    grpc_server_start(s);
    for (int i = 0; i < WAITING; i++)
        arm(r);
    return port;
}

fl_err fl_rpc_listen(fl_rpc *r, const char *address, int *port)
{
    sigset_t old;
    fl_str exact = {0};
    if (r->server)
        return fl_fail(FL_EINVAL, "rpc: %s: this one listens already", address);
    FL_TRY(fl_port_resolve(address, &exact));
    fl_grpc_signals_off(&old);
    int got = bind_server(r, exact.at);
    fl_grpc_signals_on(&old);
    fl_err e = got ? FL_OK : fl_port_why(exact.at);
    if (got)
        *port = fl_starts_with(exact.at, "unix:") ? 0 : got;
    fl_str_fini(&exact);
    return e;
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

/* gRPC says "ipv4:127.0.0.1:40312", and writes brackets as a URL does. */
static void plain_address(const char *uri, char *buf, size_t size)
{
    const char *at = strchr(uri, ':');
    size_t n = 0;
    for (at = at ? at + 1 : uri; *at && n + 1 < size; at++) {
        const bool open = !strncmp(at, "%5B", 3), shut = !strncmp(at, "%5D", 3);
        buf[n++] = open ? '[' : shut ? ']' : *at;
        at += open || shut ? 2 : 0;
    }
    buf[n] = 0;
}

const char *fl_rpc_caller(fl_rpc *r, uint64_t call, char *buf, size_t size)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    snprintf(buf, size, "?");
    if (!c)
        return buf;
    char *uri = grpc_call_get_peer(c->grpc);
    plain_address(uri, buf, size);
    gpr_free(uri);
    fl_grpc_let_be(c);
    return buf;
}

void fl_rpc_refuse(fl_rpc *r, uint64_t call, fl_err code, const char *why)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    if (!c)
        return;
    fl_grpc_end(c, fl_grpc_status_of(code), why);
    fl_grpc_let_be(c);
}
