/* grpc.c - the queue that gRPC works through, its threads, and calling.
 *
 * One completion queue serves both sides; its threads do gRPC's I/O while they
 * wait, so a callback that waited would stop the network. */
#include "net/grpc_in.h"

#include "base/log.h"

#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <limits.h>
#include <stdlib.h>

/* --- settings --- */

typedef struct setting {
    const char *key;
    int value;
} setting;

static const setting settings[] = {
    /* What the protocol knows better. */
    {GRPC_ARG_ENABLE_RETRIES, 0},
    {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
    {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
    {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1}, /* two rpc share nothing */
    {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1}, /* none: bombs */
    /* A server that comes up is found within half a second; a host that does
     * not answer at all is given up after the second packet was lost, too. */
    {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
    {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 400},
    {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000}, /* time to connect */
    {GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 500},
    /* A link that is dead without a word is noticed after 15 s. */
    {GRPC_ARG_KEEPALIVE_TIME_MS, 5000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000},
    {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000},
    {GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX},
    /* Of a connection at once; a client of gRPC keeps others back. */
    {GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024},
};

static void add(fl_grpc_args *a, setting s)
{
    grpc_arg *arg = &a->arg[a->args.num_args++];
    arg->type = GRPC_ARG_INTEGER;
    arg->key = (char *)s.key;
    arg->value.integer = s.value;
}

const grpc_channel_args *fl_grpc_args_of(const fl_rpc *r, fl_grpc_args *out)
{
    const size_t n = sizeof settings / sizeof *settings;
    const size_t most = r->opts.max_message;
    const int message = most && most < INT_MAX ? (int)most : INT_MAX;
    _Static_assert(sizeof settings / sizeof *settings + 3 <= FL_GRPC_ARGS, "");
    out->args = (grpc_channel_args){0, out->arg};
    for (size_t i = 0; i < n; i++)
        add(out, settings[i]);
    add(out, (setting){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message});
    add(out, (setting){GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, message});
    /* otherwise two servers could share a port without knowing */
    add(out, (setting){GRPC_ARG_ALLOW_REUSEPORT, r->opts.held});
    return &out->args;
}

void fl_grpc_signals_off(sigset_t *old)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, old);
}

void fl_grpc_signals_on(const sigset_t *old)
{
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

void fl_grpc_library_unref(fl_grpc_library *l)
{
    if (fl_count_down(&l->users))
        return;
    grpc_shutdown();
    fl_mem_free(l);
}

/* --- the queue --- */

static void poll_queue(void *arg)
{
    fl_rpc *r = arg;
    for (;;) {
        grpc_event e = grpc_completion_queue_next(
            r->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        if (e.type == GRPC_QUEUE_SHUTDOWN)
            return;
        fl_grpc_tag *t = e.tag;
        t->run(t->self, e.success);
    }
}

void fl_grpc_ring(fl_rpc *r, fl_grpc_tag *tag)
{
    grpc_call_start_batch(r->bell, NULL, 0, tag, NULL);
}

/* What gRPC has to say is for those who look for a fault. */
static void log_line(gpr_log_func_args *a)
{
    fl_log(FL_LEVEL_DEBUG, a->file, a->line, "grpc: %s", a->message);
}

/* Wake when a whole frame is there, not for every packet: a fifth of the CPU of
 * large messages. gRPC takes this from the environment and nowhere else; what
 * the user has set stands. */
static void choose_experiments(void)
{
    setenv("GRPC_EXPERIMENTS", "tcp_frame_size_tuning,tcp_rcv_lowat", 0);
}

/* Static slices: they are never counted. */
static grpc_metadata token_of(const fl_rpc *r)
{
    grpc_metadata m = {0};
    m.key = grpc_slice_from_static_string(FL_RPC_TOKEN);
    m.value = grpc_slice_from_static_string(r->opts.token);
    return m;
}

static void open_library(fl_rpc *r)
{
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
    gpr_set_log_function(log_line);
    choose_experiments();
    fl_mem_keep();
    grpc_init();
    if (r->opts.token)
        r->token = token_of(r);
    r->library = fl_mem_alloc(sizeof *r->library);
    fl_count_init(&r->library->users, 1);
    r->queue = grpc_completion_queue_create_for_next(NULL);
    r->nowhere = grpc_lame_client_channel_create(NULL, GRPC_STATUS_CANCELLED,
                                                 "the network is being closed");
    r->bell = grpc_channel_create_call(
        r->nowhere, NULL, GRPC_PROPAGATE_DEFAULTS, r->queue,
        grpc_slice_from_static_string("/bell"), NULL, never, NULL);
}

static void close_library(fl_rpc *r)
{
    grpc_call_unref(r->bell);
    grpc_channel_destroy(r->nowhere);
    grpc_completion_queue_shutdown(r->queue);
    if (r->pool)
        fl_pool_free(r->pool);
    else
        poll_queue(r);
    grpc_completion_queue_destroy(r->queue);
    fl_grpc_library_unref(r->library);
}

static void rpc_free(fl_rpc *r)
{
    close_library(r);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->quiet);
    fl_vec_fini(&r->slots);
    fl_vec_fini(&r->free_slots);
    fl_vec_fini(&r->peers);
    fl_mem_free((char *)r->opts.token);
    fl_mem_free(r);
}

fl_err fl_rpc_new(const fl_rpc_opts *opts, fl_rpc **out)
{
    sigset_t old;
    int threads = opts->threads ? opts->threads : 1;
    fl_rpc *r = fl_mem_alloc(sizeof *r);
    r->opts = *opts;
    r->opts.token = opts->token ? fl_mem_strdup(opts->token) : NULL;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->quiet, NULL);
    fl_grpc_signals_off(&old);
    open_library(r);
    fl_err e = fl_pool_new("rpc", threads, &r->pool);
    fl_grpc_signals_on(&old);
    if (e) {
        rpc_free(r);
        return e;
    }
    for (int i = 0; i < threads; i++)
        fl_pool_submit(r->pool, &r->polling, poll_queue, r);
    *out = r;
    return FL_OK;
}

/* --- the table of calls --- */

/* The lock is held. */
static void enter(fl_grpc_call *c)
{
    fl_rpc *r = c->rpc;
    if (!r->free_slots.n) {
        fl_push(&r->free_slots, (uint32_t)r->slots.n);
        fl_push(&r->slots, (fl_grpc_slot){0});
    }
    uint32_t i = r->free_slots.at[--r->free_slots.n];
    r->slots.at[i].call = c;
    c->id = (uint64_t)++r->slots.at[i].used << 32 | i;
}

void fl_grpc_enter(fl_grpc_call *c)
{
    pthread_mutex_lock(&c->rpc->lock);
    enter(c);
    pthread_mutex_unlock(&c->rpc->lock);
}

void fl_grpc_retire(fl_grpc_call *c)
{
    fl_rpc *r = c->rpc;
    uint32_t i = (uint32_t)c->id;
    pthread_mutex_lock(&r->lock);
    r->slots.at[i].call = NULL;
    fl_push(&r->free_slots, i);
    r->serving -= c->counted;
    pthread_mutex_unlock(&r->lock);
    if (!c->own)
        fl_grpc_count_out(c);
}

fl_grpc_call *fl_grpc_find(fl_rpc *r, uint64_t id)
{
    fl_grpc_call *c = NULL;
    uint32_t i = (uint32_t)id;
    pthread_mutex_lock(&r->lock);
    if (i < r->slots.n && r->slots.at[i].used == id >> 32)
        c = r->slots.at[i].call;
    if (c)
        fl_grpc_hold(c);
    pthread_mutex_unlock(&r->lock);
    return c;
}

/* --- the end --- */

static void cancel(fl_grpc_call *c)
{
    pthread_mutex_lock(&c->rpc->lock);
    c->cancelled = true;
    pthread_mutex_unlock(&c->rpc->lock);
    grpc_call_cancel(c->grpc, NULL);
}

static void cancel_own(fl_rpc *r)
{
    FL_VEC(fl_grpc_call *) own = {0};
    pthread_mutex_lock(&r->lock);
    r->ending = true;
    for (int64_t i = 0; i < r->slots.n; i++) {
        fl_grpc_call *c = r->slots.at[i].call;
        if (c && c->own) {
            fl_grpc_hold(c);
            fl_push(&own, c);
        }
    }
    pthread_mutex_unlock(&r->lock);
    for (int64_t i = 0; i < own.n; i++) {
        cancel(own.at[i]);
        fl_grpc_let_be(own.at[i]);
    }
    fl_vec_fini(&own);
}

/* Memory may be in the buffers of connections: only their end sets it free, so
 * they end before the calls are waited for. */
static void end_connections(fl_rpc *r)
{
    if (r->server) {
        grpc_server_shutdown_and_notify(r->server, r->queue, &r->stopped);
        grpc_server_cancel_all_calls(r->server);
    }
    for (int64_t i = 0; i < r->peers.n; i++) {
        grpc_channel_destroy(r->peers.at[i]->channel);
        fl_mem_free(r->peers.at[i]->address);
        fl_mem_free(r->peers.at[i]);
    }
}

void fl_rpc_free(fl_rpc *r)
{
    if (!r)
        return;
    cancel_own(r);
    if (r->listener)
        fl_listener_stop(r->listener);
    end_connections(r);
    pthread_mutex_lock(&r->lock);
    while (r->live || (r->server && !r->server_stopped))
        pthread_cond_wait(&r->quiet, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (r->server) {
        grpc_server_destroy(r->server);
        grpc_server_credentials_release(r->plain);
    }
    fl_listener_free(r->listener);
    rpc_free(r);
}

/* --- calling --- */

static grpc_channel *connect_to(const fl_rpc *r, const char *address)
{
    sigset_t old;
    fl_grpc_args args;
    fl_grpc_signals_off(&old);
    grpc_channel_credentials *plain = grpc_insecure_credentials_create();
    grpc_channel *c =
        grpc_channel_create(address, plain, fl_grpc_args_of(r, &args));
    grpc_channel_credentials_release(plain);
    fl_grpc_signals_on(&old);
    return c;
}

fl_rpc_peer *fl_rpc_peer_at(fl_rpc *r, const char *address)
{
    fl_rpc_peer *p = NULL;
    pthread_mutex_lock(&r->lock);
    for (int64_t i = 0; i < r->peers.n && !p; i++)
        if (!strcmp(r->peers.at[i]->address, address))
            p = r->peers.at[i];
    if (!p) {
        p = fl_mem_alloc(sizeof *p);
        p->address = fl_mem_strdup(address);
        p->channel = connect_to(r, address);
        fl_push(&r->peers, p);
    }
    pthread_mutex_unlock(&r->lock);
    return p;
}

static gpr_timespec deadline(int64_t timeout)
{
    if (!timeout)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos(timeout, GPR_TIMESPAN));
}

/* One step for fl_rpc_free: it finds the call, or the call finds nothing. */
static void dial(fl_grpc_call *c, fl_rpc_peer *to, const char *method,
                 int64_t timeout)
{
    fl_rpc *r = c->rpc;
    grpc_slice name = grpc_slice_from_copied_string(method);
    pthread_mutex_lock(&r->lock);
    c->cancelled = r->ending;
    c->grpc = grpc_channel_create_call(r->ending ? r->nowhere : to->channel,
                                       NULL, GRPC_PROPAGATE_DEFAULTS, r->queue,
                                       name, NULL, deadline(timeout), NULL);
    pthread_mutex_unlock(&r->lock);
    grpc_slice_unref(name);
    c->late = timeout;
    fl_grpc_enter(c);
}

static grpc_op status_op(fl_grpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
    op.data.recv_status_on_client.trailing_metadata = &c->tail;
    op.data.recv_status_on_client.status = &c->status;
    op.data.recv_status_on_client.status_details = &c->why;
    return op;
}

/* The head, the status, and of a request the answer: one batch. */
static void await_end(fl_grpc_call *c)
{
    grpc_op ops[3] = {{.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[0].data.recv_initial_metadata.recv_initial_metadata = &c->head;
    ops[1] = status_op(c);
    ops[2] = (grpc_op){.op = GRPC_OP_RECV_MESSAGE};
    ops[2].data.recv_message.recv_message = &c->in;
    fl_grpc_start(c, ops, c->open ? 2 : 3, &c->closed);
}

uint64_t fl_rpc_call(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     fl_packet *p, int64_t timeout, fl_rpc_done done)
{
    fl_grpc_call *c = fl_grpc_call_new(r, true);
    c->done = done;
    dial(c, to, method, timeout);
    uint64_t id = c->id;
    await_end(c);
    fl_grpc_say(c, p, true);
    fl_grpc_let_be(c);
    return id;
}

uint64_t fl_rpc_open(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     void (*heard)(void *self, uint64_t tag,
                                   const fl_packet *p),
                     fl_rpc_done done)
{
    fl_grpc_call *c = fl_grpc_call_new(r, true);
    c->done = done;
    c->heard = heard;
    c->open = true;
    dial(c, to, method, 0);
    uint64_t id = c->id;
    await_end(c);
    fl_grpc_pump(c);
    fl_grpc_listen_on(c);
    fl_grpc_let_be(c);
    return id;
}

void fl_rpc_say(fl_rpc *r, uint64_t call, fl_packet *p)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    if (!c) {
        fl_packet_unref(p);
        return;
    }
    fl_grpc_say(c, p, false);
    fl_grpc_let_be(c);
}

void fl_rpc_cancel(fl_rpc *r, uint64_t call)
{
    fl_grpc_call *c = fl_grpc_find(r, call);
    if (!c)
        return;
    cancel(c);
    fl_grpc_let_be(c);
}
