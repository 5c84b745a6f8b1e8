/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - one thread accepts connections, and checks strangers every few
 * milliseconds.
 *
 * The kernel tells how many bytes were read from a stranger, because gRPC
 * reports a message only when it is complete. Easy to get wrong:
 *
 * - gRPC may close the descriptor that `take` got at any time, so it is not
 * used here. A stranger's second descriptor is closed by this thread only.
 * - A member that shows the token in its first call may send megabytes before
 *   gRPC reports that call. So a connection may send more until a call of it
 *   was reported, and if it seems to send too much it is checked again after
 *   all that gRPC has queued was reported. The limit must not be smaller: a
 *   thread of gRPC may have read a first call and not have queued it yet. */
#include "net/listener.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/vec.h"
#include "net/address.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LOOK_MS = 5, /* between checks of strangers; 5 ms of data fit in memory */
    SETTLES = 2, /* one may be reported before earlier events */
    TICK_MS = 1000,      /* between two ticks */
    BACKLOG = 4096,      /* trainers of a large job connect at the same time */
    ACCEPTS = 64,        /* connections accepted between two checks */
    STRANGERS_ALL = 512, /* connections of strangers from all hosts */
    STRANGER_BYTES_ALL = 64 << 20, /* bytes that all strangers may send */
    /* How many times stranger_bytes a connection may send before a call of it
     * was reported. gRPC queues the first call before the server lets the
     * client send more than 64 KiB of each call, and a trainer makes at most 64
     * large calls at a time: 4 MiB. */
    BEFORE_FIRST_CALL = 8,
    /* Bytes of one stranger for which it is closed even before the network has
     * settled: more than a trainer sends at once, which is 64 pushes of
     * 4 MiB. */
    FAR_TOO_MUCH = 512 << 20,
    USER_TIMEOUT_MS = 10000, /* until unacknowledged bytes end a connection */
};
#define MS        INT64_C(1000000)
#define LOG_EVERY (60000 * MS) /* between log lines about strangers */

/* An accepted socket; the index is its descriptor. When the descriptor is used
 * again for another socket, the entry is overwritten with a new serial number.
 */
typedef struct connection {
    uint32_t serial; /* 0: no socket had this descriptor */
    bool member, local;
    int watch; /* our duplicate of the descriptor; -1: a member's, or closed */
    bool called; /* a call was reported that did not show the token */
    int calls;
    int64_t since;
    int64_t suspect; /* value of `settled` when it first had sent too much; -1:
                        it has not */
    char address[FL_ADDRESS_TEXT];
} connection;

/* Thread: `lock` guards the fields below it; those above belong to the
 * listener's thread or never change. */
struct fl_listener {
    fl_listener_opts opts;
    const fl_clock *clock;
    int fd, wake;
    int spare; /* a descriptor to close when none is left */
    fl_pool *pool;
    fl_group group;
    int64_t logged;  /* time of the last log line; 0: none yet */
    int64_t unnamed; /* strangers closed since then without a log line */
    char line[300];  /* logged when the lock is released */

    pthread_mutex_t lock;
    bool ending;
    bool settling;   /* `settle` was called */
    int64_t settled; /* how often the network has settled */
    int broken;      /* errno of a listening socket that fails for good */
    uint32_t serial; /* the newest serial number */
    FL_VEC(connection) by_fd;
    FL_VEC(int) strangers; /* descriptors, the oldest first */
};

/* --- the listening socket --- */

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static int open_socket(const fl_address *a, bool shared)
{
    const int on = 1, timeout = USER_TIMEOUT_MS;
    const int fd =
        socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    /* accepted sockets inherit these two options */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    if (!bind(fd, (const struct sockaddr *)&a->at, a->size) &&
        !listen(fd, BACKLOG))
        return fd;
    close(fd);
    return -1;
}

static int port_of(int fd)
{
    fl_address a = {.size = sizeof a.at};
    if (getsockname(fd, (struct sockaddr *)&a.at, &a.size))
        return 0;
    /* the port has the same offset for IPv6 */
    return ntohs(((const struct sockaddr_in *)&a.at)->sin_port);
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

fl_err fl_listener_new(const fl_listener_opts *opts, const char *exact,
                       int *port, fl_listener **out)
{
    fl_address a[FL_ADDRESSES];
    int n;
    FL_TRY(fl_address_find(exact, a, &n));
    const int fd = open_socket(&a[0], opts->shared);
    if (fd < 0)
        return fl_fail(FL_EIO, "cannot listen at %s", exact);
    fl_listener *l = fl_mem_alloc(sizeof *l);
    l->opts = *opts;
    l->opts.stranger_bytes = or_else(opts->stranger_bytes, 1 << 20);
    l->opts.stranger_time = or_else(opts->stranger_time, 30000 * MS);
    l->opts.stranger_calls = (int)or_else(opts->stranger_calls, 4);
    l->opts.strangers = (int)or_else(opts->strangers, 64);
    l->clock = fl_clock_real();
    l->fd = fd;
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->spare = open_spare();
    pthread_mutex_init(&l->lock, NULL);
    *port = port_of(fd);
    *out = l;
    return FL_OK;
}

/* --- closing connections; the lock is held --- */

static uint64_t name_connection(uint32_t serial, int fd)
{
    return (uint64_t)serial << 32 | (uint32_t)fd;
}

/* The connection of that name; NULL: it has ended. */
static connection *find_connection(fl_listener *l, uint64_t name)
{
    const uint32_t serial = (uint32_t)(name >> 32);
    const int64_t fd = (uint32_t)name;
    return serial && fd < l->by_fd.n && l->by_fd.at[fd].serial == serial
               ? &l->by_fd.at[fd]
               : NULL;
}

static void unwatch(connection *c)
{
    if (c->watch >= 0)
        close(c->watch);
    c->watch = -1;
}

/* Note a log line, at most one per minute, so that a flood of connections does
 * not flood the log. */
static void note(fl_listener *l, const char *what, const char *whom,
                 const char *why)
{
    const int64_t now = fl_clock_now(l->clock);
    if (l->logged && now - l->logged < LOG_EVERY) {
        l->unnamed++;
        return;
    }
    int n = snprintf(l->line, sizeof l->line, "%s %s: %s", what, whom, why);
    if (l->unnamed && n < (int)sizeof l->line)
        snprintf(l->line + n, sizeof l->line - (size_t)n,
                 " (and %lld others since the last such line)",
                 (long long)l->unnamed);
    l->logged = now;
    l->unnamed = 0;
}

/* Shut the connection down. gRPC notices that and closes its descriptor. */
static void hang_up(fl_listener *l, connection *c, const char *why)
{
    note(l, "closed the connection of", c->address, why);
    shutdown(c->watch, SHUT_RDWR);
    unwatch(c);
}

static size_t host_length(const char *address)
{
    const char *colon = strrchr(address, ':');
    return colon ? (size_t)(colon - address) : strlen(address);
}

static bool same_host(const char *a, const char *b)
{
    const size_t n = host_length(a);
    return n == host_length(b) && !memcmp(a, b, n);
}

/* Make room for one more stranger of that host: close the oldest one. */
static void make_room(fl_listener *l, const char *address)
{
    int64_t all = 0, same = 0, oldest = -1, oldest_same = -1;
    for (int64_t i = l->strangers.n - 1; i >= 0; i--) {
        const connection *c = &l->by_fd.at[l->strangers.at[i]];
        if (c->member) /* became a member since the last check */
            continue;
        all++;
        oldest = i;
        if (!same_host(c->address, address))
            continue;
        same++;
        oldest_same = i;
    }
    const bool host_is_full = same >= l->opts.strangers;
    if (!host_is_full && all < STRANGERS_ALL)
        return;
    const int64_t i = host_is_full ? oldest_same : oldest;
    hang_up(l, &l->by_fd.at[l->strangers.at[i]],
            "newer connections from outside the job took its place");
    fl_remove(&l->strangers, i);
}

/* --- accepting --- */

/* Whether the peer is on this host; also for IPv4 addresses of an IPv6 socket.
 */
static bool is_local(int fd, const char *peer)
{
    fl_address a = {.size = sizeof a.at};
    char own[FL_ADDRESS_TEXT];
    if (getsockname(fd, (struct sockaddr *)&a.at, &a.size))
        return false;
    fl_address_text(&a, own);
    return same_host(own, peer) || fl_address_loopback(peer);
}

/* Forget a stranger whose descriptor is used again. */
static void forget_stranger(fl_listener *l, int fd)
{
    for (int64_t i = l->strangers.n - 1; i >= 0; i--)
        if (l->strangers.at[i] == fd) {
            unwatch(&l->by_fd.at[fd]);
            fl_remove(&l->strangers, i);
        }
}

static void add_connection(fl_listener *l, int fd, const connection *c)
{
    pthread_mutex_lock(&l->lock);
    while (l->by_fd.n <= fd)
        fl_push(&l->by_fd, (connection){.watch = -1});
    forget_stranger(l, fd);
    if (!c->member) {
        make_room(l, c->address);
        fl_push(&l->strangers, fd);
    }
    l->by_fd.at[fd] = *c;
    if (!++l->serial)
        l->serial = 1;
    l->by_fd.at[fd].serial = l->serial;
    pthread_mutex_unlock(&l->lock);
}

/* Take an accepted socket. False: there is no descriptor left. */
static bool take_socket(fl_listener *l, int fd, const fl_address *from)
{
    connection c = {.member = l->opts.open,
                    .watch = -1,
                    .suspect = -1,
                    .since = fl_clock_now(l->clock)};
    if (!c.member && (c.watch = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        close(fd);
        return false;
    }
    fl_address_text(from, c.address);
    c.local = is_local(fd, c.address);
    add_connection(l, fd, &c);
    l->opts.take(l->opts.self, fd);
    return true;
}

/* A connection was closed because no descriptor was left. Also close a
 * stranger's, so that a member can connect. */
static void turn_away(fl_listener *l)
{
    pthread_mutex_lock(&l->lock);
    note(l, "turned away", "a connection",
         "this process may open no more files, see ulimit -n");
    if (l->strangers.n) {
        hang_up(l, &l->by_fd.at[l->strangers.at[0]],
                "this process may open no more files, see ulimit -n");
        fl_remove(&l->strangers, 0);
    }
    pthread_mutex_unlock(&l->lock);
}

/* No descriptor was left: accept the next connection with the spare one. It is
 * kept if there is a descriptor for a new spare one, because another thread has
 * closed a file meanwhile. False: no connection waits. */
static bool accept_by_spare(fl_listener *l)
{
    fl_address from = {.size = sizeof from.at};
    close(l->spare);
    const int fd = accept4(l->fd, (struct sockaddr *)&from.at, &from.size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    const bool waits = fd >= 0 || errno != EAGAIN;
    l->spare = open_spare();
    if (fd >= 0 && l->spare < 0) {
        close(fd);
        l->spare = open_spare();
        turn_away(l);
    } else if (fd >= 0 ? !take_socket(l, fd, &from) : waits)
        turn_away(l);
    return waits;
}

static bool has_no_file(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS ||
           error == ENOMEM;
}

/* Whether the error of accept concerns the listening socket itself. */
static bool is_broken(int error)
{
    return error == EBADF || error == EINVAL || error == ENOTSOCK ||
           error == EOPNOTSUPP;
}

static void accept_some(fl_listener *l)
{
    for (int i = 0; i < ACCEPTS; i++) {
        fl_address from = {.size = sizeof from.at};
        const int fd = accept4(l->fd, (struct sockaddr *)&from.at, &from.size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
        const int error = fd < 0 ? errno : 0;
        if (error == EAGAIN)
            return;
        if (is_broken(error)) {
            pthread_mutex_lock(&l->lock);
            l->broken = error;
            pthread_mutex_unlock(&l->lock);
            return;
        }
        if (has_no_file(error) && !accept_by_spare(l))
            return;
        if (!error && !take_socket(l, fd, &from))
            turn_away(l);
    }
}

/* --- checking strangers; the lock is held --- */

/* Bytes that were read from a connection. */
static int64_t bytes_of(const connection *c)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    int unread = 0;
    if (getsockopt(c->watch, IPPROTO_TCP, TCP_INFO, &info, &size) ||
        ioctl(c->watch, FIONREAD, &unread))
        return 0;
    return (int64_t)info.tcpi_bytes_received - unread;
}

/* How many bytes a stranger may send; the more strangers, the fewer. */
static int64_t bytes_allowed(const fl_listener *l, const connection *c)
{
    const int64_t share = STRANGER_BYTES_ALL / l->strangers.n;
    const int64_t most =
        l->opts.stranger_bytes * (c->called ? 1 : BEFORE_FIRST_CALL);
    return share < most ? share : most;
}

static bool sends_too_much(fl_listener *l, connection *c)
{
    const int64_t bytes = bytes_of(c);
    if (bytes <= bytes_allowed(l, c))
        return false;
    if (!l->opts.settle || bytes > FAR_TOO_MUCH)
        return true;
    if (c->suspect < 0 && !l->settling)
        c->suspect = l->settled;
    return c->suspect >= 0 && l->settled - c->suspect >= SETTLES;
}

/* Why a stranger's connection must be closed; NULL: it may stay. */
static const char *fault_of(fl_listener *l, connection *c, int64_t now)
{
    if (sends_too_much(l, c))
        return "it sent too much before it showed that it belongs to this job";
    if (now - c->since > l->opts.stranger_time)
        return "it did not show in time that it belongs to this job";
    return NULL;
}

static void look_at_strangers(fl_listener *l, int64_t now)
{
    for (int64_t i = l->strangers.n - 1; i >= 0; i--) {
        connection *c = &l->by_fd.at[l->strangers.at[i]];
        struct pollfd p = {.fd = c->watch};
        const bool gone = poll(&p, 1, 0) > 0; /* POLLHUP, POLLERR */
        const char *why = c->member || gone ? NULL : fault_of(l, c, now);
        if (why)
            hang_up(l, c, why);
        else if (c->member || gone)
            unwatch(c);
        else
            continue;
        fl_remove(&l->strangers, i);
    }
}

/* Whether `settle` must be called, because a connection is suspect. */
static bool must_settle(fl_listener *l)
{
    bool must = false;
    for (int64_t i = 0; i < l->strangers.n; i++)
        must |= l->by_fd.at[l->strangers.at[i]].suspect >= 0;
    must &= !l->settling && l->opts.settle;
    l->settling |= must;
    return must;
}

void fl_listener_settled(fl_listener *l)
{
    pthread_mutex_lock(&l->lock);
    l->settling = false;
    l->settled++;
    pthread_mutex_unlock(&l->lock);
}

/* --- the thread --- */

/* Wait until there is something to do. False: the thread must end. */
static bool wait_for_news(fl_listener *l)
{
    pthread_mutex_lock(&l->lock);
    const bool on = !l->ending;
    const int timeout = l->strangers.n ? LOOK_MS : TICK_MS;
    struct pollfd p[] = {{l->broken ? -1 : l->fd, POLLIN, 0},
                         {l->wake, POLLIN, 0}};
    pthread_mutex_unlock(&l->lock);
    if (on && poll(p, 2, timeout) > 0 && p[0].revents)
        accept_some(l);
    return on;
}

static void run_listener(void *arg)
{
    fl_listener *l = arg;
    for (int64_t ticked = 0; wait_for_news(l);) {
        const int64_t now = fl_clock_now(l->clock);
        pthread_mutex_lock(&l->lock);
        look_at_strangers(l, now);
        const bool settle = must_settle(l);
        pthread_mutex_unlock(&l->lock);
        if (settle)
            l->opts.settle(l->opts.self);
        if (l->line[0])
            FL_WARN("%s", l->line);
        l->line[0] = 0;
        if (l->opts.tick && now - ticked >= TICK_MS * MS) {
            l->opts.tick(l->opts.self, now);
            ticked = now;
        }
    }
}

fl_err fl_listener_start(fl_listener *l)
{
    FL_TRY(fl_pool_new("listener", 1, &l->pool));
    fl_pool_submit(l->pool, &l->group, run_listener, l);
    return FL_OK;
}

void fl_listener_stop(fl_listener *l)
{
    pthread_mutex_lock(&l->lock);
    l->ending = true;
    pthread_mutex_unlock(&l->lock);
    eventfd_write(l->wake, 1);
    fl_pool_free(l->pool);
    l->pool = NULL;
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    for (int64_t i = 0; i < l->strangers.n; i++)
        unwatch(&l->by_fd.at[l->strangers.at[i]]);
    l->strangers.n = 0;
}

void fl_listener_free(fl_listener *l)
{
    if (!l)
        return;
    fl_listener_stop(l);
    close(l->wake);
    close(l->spare);
    pthread_mutex_destroy(&l->lock);
    fl_vec_fini(&l->by_fd);
    fl_vec_fini(&l->strangers);
    fl_mem_free(l);
}

fl_err fl_listener_check(fl_listener *l)
{
    pthread_mutex_lock(&l->lock);
    const int broken = l->broken;
    pthread_mutex_unlock(&l->lock);
    if (broken)
        return fl_fail(FL_EIO, "lost its listening socket (%s)",
                       strerrordesc_np(broken));
    return FL_OK;
}

/* --- a connection --- */

uint64_t fl_listener_name(fl_listener *l, int fd)
{
    pthread_mutex_lock(&l->lock);
    const uint64_t name = fd >= 0 && fd < l->by_fd.n && l->by_fd.at[fd].serial
                              ? name_connection(l->by_fd.at[fd].serial, fd)
                              : 0;
    pthread_mutex_unlock(&l->lock);
    return name;
}

fl_standing fl_listener_standing(fl_listener *l, uint64_t name)
{
    pthread_mutex_lock(&l->lock);
    const connection *c = find_connection(l, name);
    const fl_standing s = !c          ? FL_STRANGER
                          : c->member ? FL_MEMBER
                          : c->local  ? FL_LOCAL
                                      : FL_STRANGER;
    pthread_mutex_unlock(&l->lock);
    return s;
}

void fl_listener_trust(fl_listener *l, uint64_t name)
{
    pthread_mutex_lock(&l->lock);
    connection *c = find_connection(l, name);
    if (c)
        c->member = true;
    pthread_mutex_unlock(&l->lock);
}

bool fl_listener_enter(fl_listener *l, uint64_t name)
{
    pthread_mutex_lock(&l->lock);
    connection *c = find_connection(l, name);
    const bool ok = c && (c->member || c->calls < l->opts.stranger_calls);
    if (ok)
        c->calls++;
    if (c)
        c->called |= !c->member;
    pthread_mutex_unlock(&l->lock);
    return ok;
}

void fl_listener_leave(fl_listener *l, uint64_t name)
{
    pthread_mutex_lock(&l->lock);
    connection *c = find_connection(l, name);
    if (c)
        c->calls--;
    pthread_mutex_unlock(&l->lock);
}

const char *fl_listener_address(fl_listener *l, uint64_t name, char *buf,
                                size_t size)
{
    pthread_mutex_lock(&l->lock);
    const connection *c = find_connection(l, name);
    snprintf(buf, size, "%s", c ? c->address : "?");
    pthread_mutex_unlock(&l->lock);
    return buf;
}
