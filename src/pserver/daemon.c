/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - the servers of a process, each on a thread of its own.
 *
 * A job need not use all of them: trainers use sparse ports for sparse
 * parameters only. So when the servers that got a program have ended, those
 * that still wait for one end, too. */
#include "pserver/daemon.h"

#include "base/flag.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/signals.h"
#include "base/vec.h"
#include "net/address.h"
#include "protocol/job.h"
#include "pserver/pserver.h"

#include <pthread.h>
#include <stdio.h>

enum {
    PORTS_MOST = 1024 /* of each kind */
};

typedef struct instance {
    struct daemon_state *of;
    char address[FL_ADDRESS_TEXT];
    bool busy; /* it has a job; under the daemon's lock */
} instance;

typedef struct daemon_state {
    const fl_exec_env *env;
    const fl_serve_opts *opts;
    FL_VEC(char *) hosts; /* addresses without ports */
    instance *all;
    int n;
    fl_signals signals;

    pthread_mutex_t lock;
    int busy;      /* servers that have a job */
    int done;      /* servers whose job has ended */
    fl_err err;    /* of the first server that failed */
    char why[512]; /* its sentence */
} daemon_state;

/* --- options --- */

static fl_err check_option(const char *name, int value, int least, int most)
{
    if (value >= least && value <= most)
        return FL_OK;
    return fl_fail(FL_EINVAL, "--%s is %d, expected %d to %d", name, value,
                   least, most);
}

static fl_err check_options(const fl_serve_opts *o)
{
    FL_TRY(fl_flags_check());
    FL_TRY(check_option("port", o->port, 1, 65535));
    FL_TRY(check_option("ports_num", o->ports, 1, PORTS_MOST));
    FL_TRY(
        check_option("ports_num_for_sparse", o->sparse_ports, 0, PORTS_MOST));
    FL_TRY(
        check_option("num_gradient_servers", o->trainers, 1, FL_TRAINERS_MOST));
    const int last = o->port + o->ports + o->sparse_ports - 1;
    if (last > 65535)
        return fl_fail(FL_EINVAL,
                       "--port is %d with %d ports: the last would be %d, "
                       "which is more than 65535",
                       o->port, o->ports + o->sparse_ports, last);
    return FL_OK;
}

/* --- addresses --- */

static fl_err add_devices(daemon_state *d, const char *nics)
{
    char name[64], host[FL_ADDRESS_TEXT];
    for (const char *at = nics; *at;) {
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n + (at[n] == ',');
        if (!*name)
            continue;
        FL_TRY(fl_address_device(name, host));
        fl_push(&d->hosts, fl_mem_strdup(host));
    }
    return FL_OK;
}

static fl_err find_hosts(daemon_state *d)
{
    const char *nics = d->opts->nics, *own = fl_flag_text("PADDLE_CURRENT_IP");
    if (nics && *nics)
        FL_TRY(add_devices(d, nics));
    if (!own)
        own = fl_flag_text("POD_IP");
    if (!d->hosts.n)
        fl_push(&d->hosts, fl_mem_strdup(own ? own : "0.0.0.0"));
    return FL_OK;
}

static void make_instances(daemon_state *d)
{
    const fl_serve_opts *o = d->opts;
    const int ports = o->ports + o->sparse_ports;
    d->n = (int)d->hosts.n * ports;
    d->all = fl_mem_alloc((size_t)d->n * sizeof *d->all);
    for (int i = 0; i < d->n; i++) {
        const char *host = d->hosts.at[i / ports];
        const bool bracket = strchr(host, ':') && *host != '[';
        d->all[i].of = d;
        snprintf(d->all[i].address, sizeof d->all[i].address, "%s%s%s:%d",
                 bracket ? "[" : "", host, bracket ? "]" : "",
                 o->port + i % ports);
    }
}

/* --- a server --- */

static void on_busy(void *user, bool is)
{
    instance *s = user;
    daemon_state *d = s->of;
    pthread_mutex_lock(&d->lock);
    s->busy = is;
    d->busy += is ? 1 : -1;
    pthread_mutex_unlock(&d->lock);
}

/* The server has ended. With --keep a job that failed is no reason to end. */
static void note_end(instance *s, fl_err err)
{
    daemon_state *d = s->of;
    pthread_mutex_lock(&d->lock);
    const bool kept = d->opts->keep && s->busy && err != FL_EINTR;
    if (err && kept) {
        FL_ERROR("%s", fl_errmsg());
    } else if (err && !d->err) {
        d->err = err;
        snprintf(d->why, sizeof d->why, "%s", fl_errmsg());
    }
    d->busy -= s->busy;
    d->done += s->busy;
    s->busy = false;
    pthread_mutex_unlock(&d->lock);
}

/* A server that waits for a program ends when the job is over elsewhere, or
 * when another server failed to start. */
static int poll_others(void *user)
{
    instance *s = user;
    daemon_state *d = s->of;
    pthread_mutex_lock(&d->lock);
    const bool over = d->err || (!d->opts->keep && d->done && !d->busy);
    const bool stop = over && !s->busy;
    pthread_mutex_unlock(&d->lock);
    return stop;
}

static void run_instance(void *arg)
{
    instance *s = arg;
    daemon_state *d = s->of;
    fl_watch watch = {.clock = fl_clock_real(), .poll = poll_others, .user = s};
    fl_exec_env env = *d->env;
    env.watch = &watch;
    const fl_pserver_opts opts = {.env = &env,
                                  .address = s->address,
                                  .trainers = d->opts->trainers,
                                  .keep = d->opts->keep,
                                  .durability = d->opts->durability,
                                  .busy = on_busy,
                                  .user = s};
    do
        note_end(s, fl_pserve(&opts));
    while (d->opts->keep && !fl_signals_ends(&d->signals) && !d->err);
}

/* --- all of them --- */

static fl_err run_instances(daemon_state *d)
{
    const fl_serve_opts *o = d->opts;
    fl_pool *pool;
    fl_group group = {0};
    fl_log_keep("paddle_pserver2.INFO");
    FL_INFO("%d servers: ports %d to %d, of which %d for sparse parameters; "
            "%d trainers",
            d->n, o->port, o->port + o->ports + o->sparse_ports - 1,
            o->sparse_ports, o->trainers);
    FL_TRY(fl_pool_new("pserver", d->n, &pool));
    for (int i = 0; i < d->n; i++)
        fl_pool_submit(pool, &group, run_instance, &d->all[i]);
    const fl_err ignored = fl_pool_wait(pool, &group, -1);
    (void)ignored; /* it has no limit */
    fl_pool_free(pool);
    return d->err ? fl_fail(d->err, "%s", d->why) : FL_OK;
}

fl_err fl_daemon_run(const fl_exec_env *env, const fl_serve_opts *opts)
{
    daemon_state d = {.env = env, .opts = opts};
    FL_TRY(check_options(opts));
    fl_err err = find_hosts(&d);
    if (!err) {
        make_instances(&d);
        pthread_mutex_init(&d.lock, NULL);
        fl_signals_begin(&d.signals);
        err = run_instances(&d);
        if (opts->signal)
            *opts->signal = fl_signals_ends(&d.signals);
        fl_signals_end(&d.signals);
        pthread_mutex_destroy(&d.lock);
    }
    for (int64_t i = 0; i < d.hosts.n; i++)
        fl_mem_free(d.hosts.at[i]);
    fl_vec_fini(&d.hosts);
    fl_mem_free(d.all);
    return err;
}
