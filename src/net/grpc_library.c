/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_library.c - gRPC's settings, and when it starts and ends. */
#include "net/grpc_library.h"

#include "base/atomic.h"
#include "base/log.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <grpc/support/log.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

struct fl_grpc_library {
    fl_count users;
};

/* --- settings --- */

typedef struct setting {
    const char *key;
    int value;
} setting;

static const setting settings[] = {
    /* The protocol repeats requests itself. */
    {GRPC_ARG_ENABLE_RETRIES, 0},
    {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
    {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
    {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
     1}, /* two fl_rpc share no connection */
    {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
     1}, /* no compression: a small message could expand to a huge one */
    /* A server that starts is found within half a second. A connect to a host
     * that does not answer ends after its second packet is lost, too. */
    {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
    {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 400},
    {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000}, /* time to connect */
    {GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 500},
    /* A dead connection is noticed after 15 s. */
    {GRPC_ARG_KEEPALIVE_TIME_MS, 5000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000},
    {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000},
    {GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX},
    /* Calls of a connection at a time; gRPC's client delays further ones. */
    {GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024},
};

static void add_setting(fl_grpc_args *a, setting s)
{
    grpc_arg *arg = &a->arg[a->args.num_args++];
    arg->type = GRPC_ARG_INTEGER;
    arg->key = (char *)s.key;
    arg->value.integer = s.value;
}

const grpc_channel_args *fl_grpc_args_of(const fl_rpc_opts *opts,
                                         fl_grpc_args *out)
{
    const size_t n = sizeof settings / sizeof *settings;
    const size_t most = opts->max_message;
    const int message = most && most < INT_MAX ? (int)most : INT_MAX;
    _Static_assert(sizeof settings / sizeof *settings + 3 <= FL_GRPC_ARGS, "");
    out->args = (grpc_channel_args){0, out->arg};
    for (size_t i = 0; i < n; i++)
        add_setting(out, settings[i]);
    add_setting(out, (setting){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message});
    add_setting(out, (setting){GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, message});
    /* two servers must not share a port by accident */
    add_setting(out, (setting){GRPC_ARG_ALLOW_REUSEPORT, opts->held});
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

/* --- start and end --- */

/* Log lines of gRPC at debug level. */
static void log_line(gpr_log_func_args *a)
{
    fl_log(FL_LEVEL_DEBUG, a->file, a->line, "grpc: %s", a->message);
}

/* Let gRPC wake up for whole frames, not for every packet: this saves a fifth
 * of the CPU time of large messages. gRPC reads the setting only from the
 * environment. A setting of the user is kept. */
static void choose_experiments(void)
{
    setenv("GRPC_EXPERIMENTS", "tcp_frame_size_tuning,tcp_rcv_lowat", 0);
}

/* Debian's Abseil, whose mutexes gRPC uses, is built as for debugging: each
 * lock enters a graph of all locks that threads hold, and looks for a cycle.
 * That can be switched off for the process. In an Abseil that is built
 * otherwise there is no such graph, or the function has another name. */
static void stop_deadlock_detection(void)
{
    const int ignore = 0; /* absl::OnDeadlockCycle::kIgnore */
    void (*set_mode)(int) = (void (*)(int))dlsym(
        RTLD_DEFAULT, "_ZN4absl7debian329SetMutexDeadlockDetectionMode"
                      "ENS0_15OnDeadlockCycleE");
    if (set_mode)
        set_mode(ignore);
}

fl_grpc_library *fl_grpc_library_new(void)
{
    fl_grpc_library *l = fl_mem_alloc(sizeof *l);
    fl_count_init(&l->users, 1);
    gpr_set_log_function(log_line);
    choose_experiments();
    stop_deadlock_detection();
    fl_mem_keep();
    grpc_init();
    return l;
}

fl_grpc_library *fl_grpc_library_ref(fl_grpc_library *l)
{
    fl_count_up(&l->users);
    return l;
}

void fl_grpc_library_unref(fl_grpc_library *l)
{
    if (fl_count_down(&l->users))
        return;
    grpc_shutdown();
    fl_mem_free(l);
}
