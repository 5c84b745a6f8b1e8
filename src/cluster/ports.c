/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - waits until servers can be reached.
 *
 * Connects never block, so that one loop tries all servers at a time:
 *
 *     resting --due--> connecting --accepted--> asking --serves--> up
 *        ^                 |                      |
 *        +--refused, late--+----something else----+
 *
 * A process that accepts the connection may be anything. It counts as up when
 * it says that it is a parameter server (net/probe.h).
 *
 * Easy to get wrong: a connect to a port of this host where no process listens
 * may connect to itself, if the system picks that port as its source port. */
#include "cluster/ports.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/tls.h"
#include "net/probe.h"
#include "protocol/job.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NAMED = 4, /* servers that a log line names; the others are counted */
};
#define NO_TLS  "it does not accept the certificate of this process, or has none"
#define FOREIGN "something else than a parameter server listens there"
static const int64_t nap_time = 20 * FL_MS;
static const int64_t rest = 200 * FL_MS;  /* between two tries */
static const int64_t answer = 2 * FL_SEC; /* limit for an answer */
static const int64_t first_line = FL_SEC; /* before the first log line */
static const int64_t more_lines = 5 * FL_SEC;
static const int64_t doubt =
    20; /* s; after this the list of servers may be wrong */

/* --- clock, sleep and log --- */

static void real_nap(void *user, int64_t ns)
{
    poll(NULL, 0, (int)(ns / FL_MS));
}

static void real_say(void *user, const char *line)
{
    FL_INFO("%s", line);
}

static fl_ports_world real_world(void)
{
    return (fl_ports_world){fl_clock_real(), real_nap, real_say};
}

/* --- how long to wait --- */

typedef struct patience {
    const fl_ports_world *w;
    fl_wait_opts opts;
    int64_t began, line; /* when the wait began; when to log next */
} patience;

/* The default limit is FLUID_START, like that of all waits at the start. */
static fl_err begin_wait(patience *p, const fl_wait_opts *opts,
                         const fl_ports_world *w)
{
    const int64_t now = fl_clock_now(w->clock);
    fl_job job = {0};
    *p = (patience){w, {0}, now, now + first_line};
    if (opts)
        p->opts = *opts;
    FL_TRY(fl_job_limits(&job));
    if (!p->opts.limit_ms)
        p->opts.limit_ms = fl_job_defaults(job).start / FL_MS;
    return FL_OK;
}

/* Sleep before the next try, or return why the wait ends. `state` says which
 * servers are up; it is freed here. */
static fl_err go_on(patience *p, fl_str *state)
{
    const int64_t now = fl_clock_now(p->w->clock);
    const long long seconds = (now - p->began) / FL_SEC;
    fl_err err = FL_OK;
    if (now - p->began >= p->opts.limit_ms * FL_MS)
        err = fl_fail(FL_ETIMEOUT,
                      "%s, given up after %lld s (FLUID_START sets how long to "
                      "wait); do the servers run, or has the job ended?",
                      state->at, seconds);
    else if (p->opts.poll && p->opts.poll(p->opts.user))
        err = fl_fail(FL_EINTR, "%s, interrupted after %lld s", state->at,
                      seconds);
    else if (now >= p->line) {
        fl_str_printf(state, ", %lld s of %lld", seconds,
                      (long long)p->opts.limit_ms / 1000);
        if (seconds >= doubt)
            fl_str_add(state, "; is the list of servers the same for all "
                              "processes of the job?");
        p->w->say(p->w->user, state->at);
        p->line = now + more_lines;
    }
    fl_str_fini(state);
    if (!err)
        p->w->nap(p->w->user, nap_time);
    return err;
}

/* --- one server --- */

typedef struct goal {
    const char *endpoint;
    fl_address at[FL_ADDRESSES];
    int n, next; /* addresses (0: not resolved yet); index of the next one */
    int fd;      /* the connection that is tried; -1: none */
    int64_t due; /* limit of this try; or when to try again */
    bool asking; /* the connection was accepted */
    bool tried;  /* all addresses were tried once */
    fl_probe answer;
    fl_tls *tls; /* of the job; NULL: it has none */
    bool up;
    const char *why;          /* why it is not up */
    const fl_wait_opts *opts; /* its poll may end a lookup */
} goal;

static const char *reason(int error)
{
    const char *text = strerrordesc_np(error);
    return error == ECONNREFUSED                           ? "refused"
           : error == ETIMEDOUT                            ? "no answer"
           : error == EHOSTUNREACH || error == ENETUNREACH ? "no route"
           : text                                          ? text
                                                           : "failed";
}

static bool met_itself(int fd)
{
    fl_address a = {.size = sizeof a.at}, b = a;
    return !getsockname(fd, (struct sockaddr *)&a.at, &a.size) &&
           !getpeername(fd, (struct sockaddr *)&b.at, &b.size) &&
           a.size == b.size && !memcmp(&a.at, &b.at, a.size);
}

/* Close a connection to itself at once, so that the port is free for the
 * server.
 */
static int end_self(int fd)
{
    const struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    return ECONNREFUSED;
}

/* A try has ended. why NULL: the server is up. */
static void conclude(goal *g, const char *why, int64_t now)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    g->up = !why;
    g->why = why;
    g->due = now;
    g->asking = false;
    if (++g->next < g->n)
        return; /* try the next address */
    g->tried = true;
    g->n = 0;
    g->due = now + rest;
}

static void begin_asking(goal *g, int64_t now)
{
    unsigned char request[FL_PROBE_BYTES];
    const size_t n = fl_probe_request(request);
    const bool alone = met_itself(g->fd);
    if (!alone && g->tls)
        g->fd = fl_tls_wrap(g->tls, g->fd, false);
    if (alone)
        conclude(g, reason(end_self(g->fd)), now);
    else if (send(g->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
        conclude(g, "it hangs up", now);
    else
        g->asking = true;
    g->answer = (fl_probe){0};
    g->due = g->asking ? now + answer : g->due;
}

static fl_err look_up(goal *g, int64_t now)
{
    const fl_err err = fl_address_find_unless(g->endpoint, g->opts->poll,
                                              g->opts->user, g->at, &g->n);
    g->next = 0;
    if (err == FL_ENOENT) {
        g->n = 0;
        g->why = "name not known";
        g->due = now + FL_SEC;
        return FL_OK;
    }
    return err;
}

static fl_err try_connect(goal *g, int64_t now)
{
    if (!g->n)
        FL_TRY(look_up(g, now));
    if (!g->n)
        return FL_OK;
    const fl_address *a = &g->at[g->next];
    g->fd =
        socket(a->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    g->due = now + answer;
    if (g->fd < 0 || connect(g->fd, (const struct sockaddr *)&a->at, a->size)) {
        if (g->fd < 0 || errno != EINPROGRESS)
            conclude(g, reason(errno), now);
    } else {
        begin_asking(g, now);
    }
    return FL_OK;
}

static void watch_connecting(goal *g, int64_t now)
{
    struct pollfd p = {g->fd, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&p, 1, 0) > 0) {
        getsockopt(g->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error)
            conclude(g, reason(error), now);
        else
            begin_asking(g, now);
    } else if (now >= g->due) {
        conclude(g, reason(ETIMEDOUT), now);
    }
}

static void watch_asking(goal *g, int64_t now)
{
    static const char *const why[] = {
        [FL_PROBE_SERVES] = NULL,
        [FL_PROBE_STARTS] = "it is starting",
        [FL_PROBE_FOREIGN] = FOREIGN,
    };
    char buf[256];
    const ssize_t n = recv(g->fd, buf, sizeof buf, MSG_DONTWAIT);
    const fl_probe_answer a =
        n > 0 ? fl_probe_hear(&g->answer, buf, (size_t)n) : FL_PROBE_MORE;
    if (a)
        conclude(g, why[a], now);
    else if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
        conclude(g,
                 g->answer.greeted ? "it hangs up"
                 : g->tls          ? NO_TLS
                                   : FOREIGN,
                 now);
    else if (now >= g->due)
        conclude(g, "it accepts and says nothing", now);
}

static fl_err step_goal(goal *g, int64_t now)
{
    if (!g->up && g->fd >= 0 && g->asking)
        watch_asking(g, now);
    else if (!g->up && g->fd >= 0)
        watch_connecting(g, now);
    if (!g->up && g->fd < 0 && now >= g->due)
        FL_TRY(try_connect(g, now));
    return FL_OK;
}

/* --- all servers --- */

/* Append "2 of 4 servers up, waiting for ps3:6174 (refused)". */
static void describe(const goal *goals, int n, int up, fl_str *s)
{
    int named = 0;
    fl_str_printf(s, "%d of %d servers up, waiting for ", up, n);
    for (int i = 0; i < n && named < NAMED; i++)
        if (!goals[i].up)
            fl_str_printf(s, "%s%s (%s)", named++ ? ", " : "",
                          goals[i].endpoint,
                          goals[i].why ? goals[i].why : "no answer");
    if (n - up > named)
        fl_str_printf(s, " and %d more", n - up - named);
}

static fl_err wait_all(goal *goals, int n, patience *p)
{
    for (;;) {
        int up = 0;
        for (int i = 0; i < n; i++) {
            FL_TRY(step_goal(&goals[i], fl_clock_now(p->w->clock)));
            up += goals[i].up;
        }
        if (up == n)
            return FL_OK;
        fl_str state = {0};
        describe(goals, n, up, &state);
        FL_TRY(go_on(p, &state));
    }
}

fl_err fl_ports_wait(int n, const char *const *endpoints,
                     const fl_wait_opts *opts, const fl_ports_world *world)
{
    goal *goals = fl_mem_alloc(((size_t)n + 1) * sizeof *goals);
    patience p;
    fl_tls *tls = NULL;
    fl_err err = fl_job_tls_read(&tls);
    for (int i = 0; i < n; i++)
        goals[i] = (goal){
            .endpoint = endpoints[i], .fd = -1, .opts = &p.opts, .tls = tls};
    if (!err)
        err = begin_wait(&p, opts, world);
    if (!err)
        err = wait_all(goals, n, &p);
    for (int i = 0; i < n; i++)
        if (goals[i].fd >= 0)
            close(goals[i].fd);
    fl_tls_free(tls);
    fl_mem_free(goals);
    return err;
}

fl_err fl_wait_ports(int n, const char *const *endpoints,
                     const fl_wait_opts *opts)
{
    const fl_ports_world world = real_world();
    return fl_ports_wait(n, endpoints, opts, &world);
}

fl_err fl_ports_ask(const char *endpoint)
{
    const fl_ports_world w = real_world();
    const fl_wait_opts nobody = {0};
    goal g = {.endpoint = endpoint, .fd = -1, .opts = &nobody};
    fl_err err = fl_job_tls_read(&g.tls);
    while (!err && !g.up && !g.tried) {
        err = step_goal(&g, fl_clock_now(w.clock));
        if (!err && !g.n && g.fd < 0 && !g.tried) /* the name is not known */
            break;
        if (!err && !g.up)
            w.nap(w.user, nap_time);
    }
    if (g.fd >= 0)
        close(g.fd);
    fl_tls_free(g.tls);
    if (!err && !g.up)
        err = fl_fail(FL_EIO, "no server answers at %s (%s)", endpoint, g.why);
    return err;
}

fl_err fl_ports_resolve(const char *endpoint, const fl_wait_opts *opts,
                        const fl_ports_world *world, char out[FL_ADDRESS_TEXT])
{
    const fl_ports_world real = real_world();
    fl_address at[FL_ADDRESSES];
    patience p;
    int n = 0;
    FL_TRY(begin_wait(&p, opts, world ? world : &real));
    for (;;) {
        const fl_err err =
            fl_address_find_unless(endpoint, p.opts.poll, p.opts.user, at, &n);
        if (err != FL_ENOENT) {
            if (!err)
                fl_address_text(&at[0], out);
            return err;
        }
        fl_str state = {0};
        fl_str_add(&state, fl_errmsg());
        FL_TRY(go_on(&p, &state));
    }
}
