/* pserver.c - a server process from its first to its last breath. */
#include "pserver/pserver_in.h"

#include "base/flag.h"
#include "base/log.h"
#include "base/signals.h"
#include "cluster/ports.h"
#include "net/port.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TICK (250 * FL_MS)
#define POLL (50 * FL_MS) /* of signals: people notice a tenth of a second */

enum {
    CALLS = 128 /* of one trainer at once: 64 pushes, and some that wait */
};

/* --- the lock and the log --- */

void fl_pserver_lock(fl_pserver *p)
{
    pthread_mutex_lock(&p->lock);
}

void fl_pserver_unlock(fl_pserver *p)
{
    const int64_t n = p->notes.n;
    char **note = p->notes.at;
    if (n)
        memset(&p->notes, 0, sizeof p->notes);
    pthread_mutex_unlock(&p->lock);
    for (int64_t i = 0; i < n; i++) {
        if (fl_starts_with(note[i], "stalled"))
            FL_WARN("%s", note[i]);
        else
            FL_INFO("%s", note[i]);
        fl_mem_free(note[i]);
    }
    if (n)
        fl_mem_free(note);
}

void fl_pserver_note(fl_pserver *p, const char *fmt, ...)
{
    char line[FL_LOG_LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fl_push(&p->notes, fl_mem_strdup(line));
}

/* Rows of a text. */
static int count_rows(const fl_str *s)
{
    int n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->at[i] == '\n';
    return n;
}

void fl_pserver_waits(fl_pserver *p, bool names, fl_str *text)
{
    const int64_t now = fl_pserver_now(p);
    const int me = p->place->server;
    fl_str rows = {0};
    if (p->coord)
        fl_coord_waits(p->coord, now, &rows);
    fl_server_waits(p->server, now, &rows);
    fl_pstore_waits(p->store, &rows);
    fl_str_printf(text, "server %d of %d at %s: version %lld, view %lld", me,
                  p->job.servers, p->address,
                  (long long)fl_server_version(p->server),
                  (long long)fl_server_view(p->server));
    if (p->coord)
        fl_str_printf(text, ", %d of %d trainers are complete",
                      fl_coord_done(p->coord), p->job.trainers);
    if (names || !rows.n)
        fl_str_printf(text, "\n%s", rows.n ? rows.at : "nobody waits\n");
    else
        fl_str_printf(text,
                      "\nwaits: %d; ask on the server's own host to see them\n",
                      count_rows(&rows));
    fl_str_fini(&rows);
}

/* --- beginning --- */

static fl_err check_place(const fl_placement *place)
{
    if (!place || place->server < 0 || place->server >= place->n_servers)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the program is no server's part of a "
                       "job; transpile gives it with get_pserver_program");
    return FL_OK;
}

static fl_err make_store(fl_pserver *p)
{
    double owners = 1, table_bytes = 0;
    bool allow_nan = false;
    FL_TRY(fl_flag_number("FLUID_OWNERS", &owners));
    FL_TRY(fl_flag_number("FLUID_TABLE_MEMORY", &table_bytes));
    FL_TRY(fl_flag_bool("FLUID_ALLOW_NAN", &allow_nan));
    FL_TRY(
        fl_pstore_new(&(fl_pstore_opts){.env = p->opts->env,
                                        .program = p->opts->program,
                                        .op = p->opts->op,
                                        .scope = p->opts->scope,
                                        .owners = owners < 1 ? 1 : (int)owners,
                                        .allow_nan = allow_nan,
                                        .table_bytes = (int64_t)table_bytes,
                                        .self = p,
                                        .applied = fl_pserver_applied,
                                        .answer = fl_pserver_answer},
                      &p->store));
    p->face = *fl_pstore_face(p->store);
    return FL_OK;
}

static void make_machines(fl_pserver *p)
{
    fl_entropy *e = p->opts->env->entropy;
    const int64_t now = fl_pserver_now(p);
    p->secret = e->draw(e) | 1; /* 0 is nobody's */
    p->state = (fl_state){e->draw(e) | 1, 1};
    if (!p->place->server) {
        p->coord = fl_coord_new(&p->job, p->state, &p->coord_out, now);
        p->tallies = fl_tallies_new(p->job.trainers);
    }
    p->server = fl_server_new(&p->job, p->place->server, p->state, &p->face,
                              &p->server_out, now);
}

/* Each peer is a file; a large job has more of them than the usual limit. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* or it stays as it was */
}

/* One thread reads as fast as a socket gives; two would hand the polling to
 * each other at every message, at a tenth of the server's CPU time. */
static fl_err make_network(fl_pserver *p)
{
    char token[FL_JOB_TOKEN];
    bool held = false; /* launch/ports.c says how */
    allow_files();
    FL_TRY(fl_flag_bool("FLUID_PORT_HELD", &held));
    fl_pserver_methods(p);
    FL_TRY(
        fl_rpc_new(&(fl_rpc_opts){.methods = p->method,
                                  .held = held,
                                  .self = p,
                                  .hangup = fl_pserver_hangup,
                                  .token = fl_job_token(&p->job, token),
                                  .max_calls = 1024 + CALLS * p->job.trainers},
                   &p->rpc));
    for (int i = 0; i < p->job.servers; i++)
        if (i != p->place->server)
            p->peer[i] = fl_rpc_peer_at(p->rpc, p->place->servers[i]);
    return FL_OK;
}

/* The signal that asks for the end, or 0. A front that has handlers of its own
 * tells of Ctrl-C by its poll. */
static int end_asked(void *self)
{
    const fl_pserver *p = self;
    const fl_watch *w = p->opts->env->watch;
    const int number = fl_signals_ends(p->signals);
    return number ? number : w && w->poll && w->poll(w->user) ? SIGINT : 0;
}

static fl_err listen_at(fl_pserver *p)
{
    const char *endpoint = p->place->servers[p->place->server];
    char exact[FL_ADDRESS_TEXT], token[FL_JOB_TOKEN];
    FL_TRY(fl_ports_resolve(
        endpoint, &(fl_wait_opts){.poll = end_asked, .user = p}, NULL, exact));
    FL_TRY(fl_rpc_listen(p->rpc, exact, &p->port));
    snprintf(p->address, sizeof p->address, "%.*s:%d",
             (int)(strrchr(exact, ':') - exact), exact, p->port);
    fl_rpc_healthy(p->rpc, true);
    FL_INFO("Server listening on %s", p->address);
    FL_INFO("job %s: server %d of %d, %d trainers, %s",
            fl_job_token(&p->job, token), p->place->server, p->job.servers,
            p->job.trainers, p->job.async ? "asynchronous" : "synchronous");
    if (!fl_address_loopback(p->address))
        FL_WARN("%s is not a loopback address: parameters and gradients "
                "travel as plain text",
                p->address);
    return FL_OK;
}

/* --- serving --- */

static void nap(int64_t ns)
{
    const struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL); /* a signal ends it */
}

/* All is well, and nobody is left who could ask anything: a trainer hangs up
 * when it knows that it has completed, and the coordinator knows that this
 * server has ended, or takes a refusal for it. */
static bool alone(const fl_pserver *p)
{
    const fl_channel *report = &p->channel[0][FL_MSG_STATE];
    const char *why;
    int code = 1;
    if (!fl_server_ended(p->server) || !fl_server_end(p->server, &code, &why))
        return false;
    return !code &&
           (p->coord ? fl_coord_told(p->coord) && !p->open.n : !report->busy);
}

static bool over(const fl_pserver *p, int64_t now)
{
    int code;
    return alone(p) || (fl_server_over(p->server, now, &code) &&
                        (!p->coord || fl_coord_over(p->coord, now)));
}

static fl_err verdict(const fl_pserver *p)
{
    const char *why = "";
    int code = 0;
    if (!p->coord || !fl_coord_ended(p->coord, &code, &why))
        fl_server_end(p->server, &code, &why);
    return code ? fl_fail(FL_EIO, "the job has failed: %s", why) : FL_OK;
}

static void tick(fl_pserver *p)
{
    const int64_t now = fl_pserver_now(p);
    fl_pserver_lock(p);
    if (p->coord)
        fl_coord_tick(p->coord, now);
    fl_server_tick(p->server, now);
    fl_pserver_flush(p);
    fl_pserver_unlock(p);
}

/* The others learn why it ends, if that takes no longer than a second. It is a
 * failure unless the job was complete. */
static fl_err end_early(fl_pserver *p, fl_err err, const char *by)
{
    const int64_t now = fl_pserver_now(p);
    const char *verdict;
    char server[160], why[512];
    int code = 0;
    fl_job_server(&p->job, p->place->server, server, sizeof server);
    snprintf(why, sizeof why, "%s %s", server, by);
    FL_INFO("%s", why);
    fl_pserver_lock(p);
    const bool complete = fl_server_end(p->server, &code, &verdict) && !code;
    if (p->coord)
        fl_coord_end(p->coord, (int)err, why, now);
    else
        fl_server_quit(p->server, why, now);
    fl_pserver_flush(p);
    fl_pserver_unlock(p);
    for (int i = 0; i < 4; i++) {
        nap(TICK);
        tick(p);
    }
    return complete ? FL_OK
                    : fl_fail(err, "%s before the job was complete", why);
}

static void print_waits(fl_pserver *p)
{
    fl_str text = {0};
    fl_pserver_lock(p);
    fl_pserver_waits(p, true, &text);
    fl_pserver_unlock(p);
    FL_WARN("%s", text.at);
    fl_str_fini(&text);
}

static bool finished(fl_pserver *p, fl_err *err)
{
    fl_pserver_lock(p);
    const bool done = over(p, fl_pserver_now(p));
    if (done)
        *err = verdict(p);
    fl_pserver_unlock(p);
    return done;
}

static fl_err serve(fl_pserver *p)
{
    fl_err err = FL_OK;
    for (int i = 0; !finished(p, &err); i++, nap(POLL)) {
        if (i % (int)(TICK / POLL) == 0)
            tick(p);
        if (fl_signals_asks(p->signals))
            print_waits(p);
        const int number = end_asked(p);
        if (number)
            return end_early(p, FL_EINTR,
                             number == SIGTERM ? "was ended by SIGTERM"
                                               : "was ended by SIGINT");
        if (fl_rpc_check(p->rpc))
            return end_early(p, FL_EIO, fl_errmsg());
    }
    return err;
}

/* --- the whole --- */

static void begin(fl_pserver *p, const fl_pserver_opts *opts)
{
    p->opts = opts;
    p->place = fl_placement_of(opts->program->job);
    p->clock = fl_clock_real();
    pthread_mutex_init(&p->lock, NULL);
    fl_outbox_init(&p->coord_out);
    fl_outbox_init(&p->server_out);
    const size_t n = (size_t)p->job.servers;
    p->peer = fl_mem_alloc(n * sizeof *p->peer);
    p->channel = fl_mem_alloc(n * sizeof *p->channel);
    p->known = fl_mem_alloc(n * sizeof *p->known);
    p->told = fl_mem_alloc((size_t)p->job.trainers * sizeof *p->told);
}

/* The machines are closed first: then neither the store nor the network can
 * reach them while the other one ends. */
static void end(fl_pserver *p)
{
    fl_pserver_lock(p);
    p->closed = true;
    fl_pserver_unlock(p);
    fl_pstore_free(p->store);
    fl_rpc_free(p->rpc);
    if (p->port)
        fl_port_file_remove();
    fl_coord_free(p->coord);
    fl_tallies_free(p->tallies);
    fl_server_free(p->server);
    fl_outbox_fini(&p->coord_out);
    fl_outbox_fini(&p->server_out);
    fl_pserver_drop_channels(p);
    fl_mem_free(p->peer);
    fl_mem_free(p->known);
    fl_mem_free(p->told);
    fl_vec_fini(&p->open);
    fl_vec_fini(&p->notes);
    pthread_mutex_destroy(&p->lock);
}

static fl_err run(fl_pserver *p)
{
    FL_TRY(make_store(p));
    make_machines(p);
    FL_TRY(make_network(p));
    FL_TRY(listen_at(p));
    if (fl_port_file_write(p->port))
        FL_WARN("%s", fl_errmsg()); /* nothing needs it but old scripts */
    return serve(p);
}

fl_err fl_pserve(const fl_pserver_opts *opts)
{
    const fl_placement *place = fl_placement_of(opts->program->job);
    fl_job limits = opts->limits;
    fl_pserver p = {0};
    fl_signals signals;
    char why[1024]; /* the end may have failures of its own */
    FL_TRY(check_place(place));
    FL_TRY(fl_job_limits(&limits));
    p.job = fl_placement_job(place, &limits);
    FL_TRY(fl_job_check(&p.job));
    begin(&p, opts);
    p.signals = &signals;
    fl_signals_begin(&signals);
    const fl_err err = run(&p);
    snprintf(why, sizeof why, "%s", fl_errmsg());
    fl_signals_end(&signals);
    end(&p);
    return err ? fl_fail(err, "%s", why) : FL_OK;
}
