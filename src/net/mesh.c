/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - the sockets of a rank: they connect, carry bytes, and end.
 *
 *     join   greetings (net/greeting.h) over the connections that the state
 *            machine asks for
 *     wait   one poll over the data wanted and every control connection; what
 *            comes goes to the state machine (net/ranks.h), which decides
 *     move   bytes of a call out to one rank and in from another
 *
 * Ranks of one host have a Unix socket as their data connection. The data lie
 * in memory that they share (base/fifo.h); the socket carries only bytes that
 * wake the other side, and its end. */
#include "net/mesh.h"

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/fifo.h"
#include "base/mem.h"
#include "base/pool.h"
#include "net/address.h"
#include "net/port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SLICE = 100,       /* ms between two calls of opts.poll */
    RETRY = 50,        /* ms between two attempts to connect */
    GRAIN = 256 << 10, /* bytes that are worth a system call and a wakeup */
    BURST = 1 << 20,   /* bytes sent at once, before this rank receives again */
    PIECE = 512 << 10, /* bytes received at once to be folded; more would leave
                          the cache */
    PAGE = 4096,
    CHUNK = 64 << 10, /* bytes that are worth a wakeup in shared memory */
    ALIGN = 64,       /* alignment of a call's data in shared memory */
    HEAD = sizeof(fl_call_head),
    CONTROL_AT = 2,    /* index of the control connections in `polls` */
    KEEPALIVE_IDLE = 5 /* s; an unreachable host is found after 5 + 3 * 3 s */
};

#define SPIN          (50 * INT64_C(1000)) /* ns of a wait before it sleeps */
#define SPIN_ALONE    (4 * INT64_C(1000))  /* of those, without a yield */
#define YIELDS        4 /* before a wait sleeps, with fewer cores than ranks */
#define STRANGER_TIME (5 * FL_SEC) /* for a greeting */

typedef struct peer {
    int fd[FL_MESH_CHANNELS]; /* -1: not connected */
    bool local;               /* it is on this host */
    void *shared;         /* memory for data; NULL: they go over the socket */
    fl_fifo out, in_data; /* in the shared memory */
    bool mute;            /* a note to it did not fit: no more can be sent */
    unsigned char process[FL_SHARE_NAME];
} peer;

struct fl_mesh {
    fl_mesh_opts opts;
    int rank, world;
    fl_ranks *ranks;
    fl_greeting_key key;
    peer *peers;          /* [world]; that of this rank is not connected */
    struct pollfd *polls; /* [2 + world]: data out, data in, control of each */
    char *piece;          /* received bytes that are to be folded: PIECE bytes
                           * that start somewhere within the first page */
    int listener;
    int local_listener; /* for ranks of this host; -1: none */
    unsigned char host[FL_SHARE_HOST];
    int local; /* number of ranks on this host */
    bool spin; /* waits spin: this host has a core for each of its ranks */
    unsigned char process[FL_SHARE_NAME];
    int64_t join_until; /* ns */
};

static int64_t now_ns(void)
{
    return fl_clock_now(fl_clock_real());
}

static const char *endpoint_of(const fl_mesh *m, int rank)
{
    return m->opts.endpoints[rank];
}

/* --- notes and waits ------------------------------------------------------ */

/* What the machine has to say goes out. */
static void say_notes(fl_mesh *m)
{
    size_t size;
    const void *notes = fl_ranks_take_notes(m->ranks, &size);
    for (int i = 0; notes && i < m->world; i++) {
        peer *p = &m->peers[i];
        if (p->fd[FL_MESH_CONTROL] < 0 || p->mute)
            continue;
        p->mute = send(p->fd[FL_MESH_CONTROL], notes, size,
                       MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size;
    }
    const char *late = fl_ranks_take_late(m->ranks);
    if (late && m->opts.late)
        m->opts.late(m->opts.user, late);
}

/* The machine has returned err, and may have more to say. */
static fl_err tell_all(fl_mesh *m, fl_err err)
{
    say_notes(m);
    return err;
}

/* The mesh fails with the sentence of the thread. */
static fl_err fail_mesh(fl_mesh *m, fl_err code)
{
    return tell_all(m, fl_ranks_fail(m->ranks, code));
}

/* Read all notes that have arrived from a rank. */
static fl_err read_notes(fl_mesh *m, int rank)
{
    peer *p = &m->peers[rank];
    char bytes[1024];
    for (;;) {
        const ssize_t got =
            recv(p->fd[FL_MESH_CONTROL], bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return FL_OK;
        if (got > 0) {
            FL_TRY(fl_ranks_hear(m->ranks, rank, bytes, (size_t)got));
            continue;
        }
        const int error = got ? errno : 0;
        m->polls[CONTROL_AT + rank].fd = -1;
        close(p->fd[FL_MESH_CONTROL]);
        p->fd[FL_MESH_CONTROL] = -1;
        return fl_ranks_end_control(m->ranks, rank, error);
    }
}

static struct pollfd when_read(int fd)
{
    return (struct pollfd){.fd = fd, .events = POLLIN};
}

static struct pollfd when_written(int fd)
{
    return (struct pollfd){.fd = fd, .events = POLLOUT};
}

/* Sleep until one of two descriptors (-1: none) is ready, a note arrives, or
 * `slice` ms have passed. Fails only if the mesh fails. */
static fl_err wait_some(fl_mesh *m, struct pollfd a, struct pollfd b, int slice)
{
    const int64_t most = fl_ranks_due(m->ranks) - now_ns();
    if (most < slice * FL_MS)
        slice = most > 0 ? (int)(most / FL_MS) + 1 : 0;
    m->polls[0] = a;
    m->polls[1] = b;
    const int n = poll(m->polls, (nfds_t)(CONTROL_AT + m->world), slice);
    for (int i = 0; n > 0 && i < m->world; i++)
        if (m->polls[CONTROL_AT + i].revents)
            FL_TRY(tell_all(m, read_notes(m, i)));
    const int64_t now = now_ns();
    if (n > 0 && (m->polls[0].revents || m->polls[1].revents) &&
        now < fl_ranks_due(m->ranks))
        return FL_OK; /* do not spin on a descriptor that stays ready */
    FL_TRY(tell_all(m, fl_ranks_tick(m->ranks, now)));
    if (m->opts.poll && m->opts.poll(m->opts.user))
        return tell_all(m, fl_ranks_interrupt(m->ranks));
    return FL_OK;
}

/* The data connection of a rank has ended: the mesh fails as soon as the reason
 * is known. */
static fl_err explain_loss(fl_mesh *m, int rank)
{
    fl_err err = tell_all(m, fl_ranks_end_data(m->ranks, rank, now_ns()));
    while (!err)
        err = wait_some(m, when_read(-1), when_read(-1), SLICE);
    return err;
}

/* --- join ----------------------------------------------------------------- */

/* Send or receive n bytes. False: the connection ended, the time `until`
 * passed, or the mesh failed. */
static bool transfer(fl_mesh *m, int fd, void *buf, size_t n, bool out,
                     int64_t until)
{
    for (char *p = buf; n;) {
        const ssize_t some = out ? send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : recv(fd, p, n, MSG_DONTWAIT);
        if (some > 0) {
            p += some;
            n -= (size_t)some;
        } else if (!some || (errno != EAGAIN && errno != EINTR)) {
            return false;
        } else if (now_ns() >= until ||
                   wait_some(m, out ? when_written(fd) : when_read(fd),
                             when_read(-1), SLICE)) {
            return false;
        }
    }
    return true;
}

static void set_socket(int fd)
{
    const int on = 1, idle = KEEPALIVE_IDLE, step = 3;
    const unsigned unacknowledged = 15000; /* ms */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof step);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &step, sizeof step);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
               sizeof unacknowledged);
}

static void set_peer(fl_mesh *m, int rank, fl_mesh_channel c, int fd)
{
    m->peers[rank].fd[c] = fd;
    fl_ranks_connected(m->ranks, rank, c);
    if (c == FL_MESH_CONTROL)
        m->polls[CONTROL_AT + rank] =
            (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Within a host nothing is lost or congested. An algorithm that paces what is
 * sent (BBR) only delays it there. Every process may choose "reno". */
static void stop_pacing(int fd)
{
    static const char name[] = "reno";
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof name - 1);
}

/* Divide shared memory into two halves, one for each direction; the lower rank
 * writes to the first one. */
static void set_memory(fl_mesh *m, int rank, void *memory)
{
    const size_t half = fl_fifo_memory_size();
    char *lower = memory, *higher = lower + half;
    peer *p = &m->peers[rank];
    p->shared = memory;
    p->out = (fl_fifo){(void *)(m->rank < rank ? lower : higher), 0};
    p->in_data = (fl_fifo){(void *)(m->rank < rank ? higher : lower), 0};
}

static bool receive_memory(fl_mesh *m, int rank, int fd, int64_t until)
{
    void *memory;
    while (!(memory = fl_share_receive(fd, 2 * fl_fifo_memory_size()))) {
        if (errno == ENOENT)
            return true; /* no shared memory: data use the socket */
        if (errno != EAGAIN || now_ns() >= until ||
            wait_some(m, when_read(fd), when_read(-1), SLICE))
            return false;
    }
    set_memory(m, rank, memory);
    return true;
}

/* The client's side of the greeting. True: the server is that rank. */
static bool greet_server(fl_mesh *m, int rank, fl_mesh_channel c, int fd)
{
    const int64_t until = m->join_until;
    fl_entropy entropy = fl_entropy_real();
    unsigned char proof[FL_SHA256];
    fl_hello_reply r;
    fl_hello_verdict v;
    fl_hello h = {.world = m->world, .rank = m->rank, .to = rank, .channel = c};
    memcpy(h.process, m->process, sizeof h.process);
    memcpy(h.host, m->host, sizeof h.host);
    fl_hello_seal(&h, &entropy);
    fl_ranks_excuse(m->ranks, "it accepts connections but has not answered");
    if (!transfer(m, fd, &h, sizeof h, true, until) ||
        !transfer(m, fd, &r, sizeof r, false, until))
        return false;
    if (!fl_hello_reply_is(&r)) {
        fl_ranks_excuse(m->ranks,
                        "what listens there is not a rank of a job, or of "
                        "another version of Fluid");
        return false;
    }
    fl_hello_prove(&h, &r, m->key, proof);
    if (!transfer(m, fd, proof, sizeof proof, true, until) ||
        !transfer(m, fd, &v, sizeof v, false, until))
        return false;
    if (!fl_hello_trusts(&h, &r, m->key)) {
        fl_ranks_excuse(m->ranks, "it has another job key: give all ranks the "
                                  "same one");
        return false;
    }
    if (v.refused)
        return !tell_all(m, fl_ranks_refuse(m->ranks, rank, &v));
    m->peers[rank].local = r.local;
    memcpy(m->peers[rank].process, r.process, sizeof r.process);
    return !v.shares || receive_memory(m, rank, fd, until);
}

/* A TCP socket as ranks use it; -1: no file is left. */
static int wrap_socket(fl_mesh *m, int fd, bool accepted)
{
    set_socket(fd);
    if (!m->opts.tls)
        return fd;
    const int plain = fl_tls_wrap(m->opts.tls, fd, accepted);
    if (plain < 0)
        fl_ranks_excuse(m->ranks, "%s", strerror(errno));
    return plain;
}

/* Try once to connect. -1: m->reason is set, or the mesh failed. */
static int connect_once(fl_mesh *m, int rank)
{
    fl_address at[FL_ADDRESSES];
    int n, error = 0;
    if (fl_address_find(endpoint_of(m, rank), at, &n)) {
        fl_ranks_excuse(m->ranks, "%s", fl_errmsg());
        return -1;
    }
    for (int i = 0; i < n; i++) {
        const int fd = socket(at[i].at.ss_family,
                              SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t size = sizeof error;
        if (fd < 0) {
            error = errno;
            continue;
        }
        const int64_t until = now_ns() + STRANGER_TIME;
        error =
            connect(fd, (struct sockaddr *)&at[i].at, at[i].size) ? errno : 0;
        while (error == EINPROGRESS && now_ns() < until) {
            if (wait_some(m, when_written(fd), when_read(-1), SLICE))
                break;
            if (m->polls[0].revents)
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        }
        if (!error)
            return wrap_socket(m, fd, false);
        close(fd);
        if (fl_ranks_check(m->ranks))
            return -1;
    }
    fl_ranks_excuse(m->ranks, "%s",
                    error == EINPROGRESS ? "its host does not answer"
                                         : strerror(error));
    return -1;
}

/* Connect a channel. Data between ranks of this host use a Unix socket, or TCP
 * if that fails. */
static int connect_channel(fl_mesh *m, int rank, fl_mesh_channel c)
{
    if (c == FL_MESH_DATA && m->local_listener >= 0 && m->peers[rank].local) {
        const int fd = fl_share_connect(m->peers[rank].process);
        if (fd >= 0)
            return fd;
    }
    return connect_once(m, rank);
}

/* An attempt ends. The server may have made its end a control connection: it
 * must not take the end of this rank for a death. */
static void end_attempt(const fl_mesh *m, fl_mesh_channel c, int fd)
{
    size_t size;
    const void *note = fl_ranks_failure_note(m->ranks, &size);
    if (note && c == FL_MESH_CONTROL)
        (void)!send(fd, note, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

static fl_err connect_to(fl_mesh *m, int rank, fl_mesh_channel c)
{
    for (;;) {
        const int fd = connect_channel(m, rank, c);
        if (fd >= 0 && greet_server(m, rank, c, fd)) {
            set_peer(m, rank, c, fd);
            return FL_OK;
        }
        if (fd >= 0)
            end_attempt(m, c, fd);
        FL_TRY(fl_ranks_check(m->ranks));
        FL_TRY(wait_some(m, when_read(-1), when_read(-1), RETRY));
    }
}

/* Whether this process can recognise ranks of the same host. */
static bool knows_host(const fl_mesh *m)
{
    static const unsigned char none[FL_SHARE_HOST];
    return memcmp(m->host, none, sizeof none);
}

/* The verdict over a client whose greeting is whole. The mesh fails for one
 * that has the key and cannot have its place; a stranger does not end the job.
 */
static bool judge_client(fl_mesh *m, const fl_hello *h, const char *address,
                         bool trusted, fl_hello_verdict *v)
{
    if (trusted && !tell_all(m, fl_ranks_admit(m->ranks, h, address)))
        return true;
    v->refused = 1;
    if (trusted) {
        snprintf(v->reason, sizeof v->reason, "%s", fl_errmsg());
    } else {
        snprintf(v->reason, sizeof v->reason,
                 "%s says it is rank %d but has another job key", address,
                 h->rank);
        fl_ranks_excuse(m->ranks, "%s", v->reason);
    }
    return false;
}

/* The socket becomes the connection of a rank, and takes the place of one of an
 * attempt before. */
static void seat_client(fl_mesh *m, const fl_hello *h, int fd, bool local)
{
    peer *p = &m->peers[h->rank];
    if (p->fd[h->channel] >= 0)
        close(p->fd[h->channel]);
    set_peer(m, h->rank, (fl_mesh_channel)h->channel, fd);
    if (h->channel == FL_MESH_DATA) {
        fl_share_end(p->shared, 2 * fl_fifo_memory_size());
        p->shared = NULL;
    }
    p->local = local;
}

/* The server's side of the greeting. True: the socket now belongs to a peer. */
static bool greet_client(fl_mesh *m, int fd, const char *address,
                         bool over_unix)
{
    const int64_t until = now_ns() + STRANGER_TIME;
    fl_entropy entropy = fl_entropy_real();
    unsigned char want[FL_SHA256], proof[FL_SHA256];
    fl_hello_reply r = {0};
    fl_hello_verdict v = {0};
    fl_hello h;
    if (!transfer(m, fd, &h, sizeof h, false, until) || !fl_hello_is(&h))
        return false;
    memcpy(r.process, m->process, sizeof r.process);
    r.local = knows_host(m) && !memcmp(h.host, m->host, sizeof h.host);
    fl_hello_answer(&h, m->key, &entropy, &r);
    fl_hello_prove(&h, &r, m->key, want);
    if (!transfer(m, fd, &r, sizeof r, true, until) ||
        !transfer(m, fd, proof, sizeof proof, false, until))
        return false;
    if (!judge_client(m, &h, address, fl_sha256_same(want, proof), &v)) {
        transfer(m, fd, &v, sizeof v, true, until);
        return false;
    }
    seat_client(m, &h, fd, r.local);
    v.shares = over_unix && h.channel == FL_MESH_DATA;
    if (!transfer(m, fd, &v, sizeof v, true, until))
        return true; /* if it is lost now, a later wait reports it */
    void *memory =
        v.shares ? fl_share_send(fd, 2 * fl_fifo_memory_size()) : NULL;
    if (memory)
        set_memory(m, h.rank, memory);
    return true;
}

/* Accept a connection on the Unix socket; -1: none from the same user. */
static int accept_local(fl_mesh *m)
{
    const int fd = m->local_listener < 0
                       ? -1
                       : accept4(m->local_listener, NULL, NULL,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || fl_share_trusts(fd))
        return fd;
    close(fd);
    return -1;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

static fl_err accept_all(fl_mesh *m)
{
    while (fl_ranks_next_client(m->ranks)) {
        fl_address from = {.size = sizeof from.at};
        char address[FL_ADDRESS_TEXT];
        say_notes(m);
        const int local = accept_local(m);
        int fd = local >= 0 ? local
                            : accept4(m->listener, (struct sockaddr *)&from.at,
                                      &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && !is_passing(errno))
            return fail_mesh(m, fl_fail(FL_EIO,
                                        "rank %d (%s) cannot accept "
                                        "connections: %s",
                                        m->rank, endpoint_of(m, m->rank),
                                        strerror(errno)));
        if (fd < 0) {
            FL_TRY(wait_some(m, when_read(m->local_listener),
                             when_read(m->listener), SLICE));
            continue;
        }
        if (local >= 0) {
            snprintf(address, sizeof address, "a process of this host");
        } else {
            fd = wrap_socket(m, fd, true);
            fl_address_text(&from, address);
        }
        if (fd >= 0 && !greet_client(m, fd, address, local >= 0))
            close(fd);
        FL_TRY(fl_ranks_check(m->ranks));
    }
    return FL_OK;
}

static fl_err open_listener(fl_mesh *m)
{
    fl_str exact = {0};
    fl_address at[FL_ADDRESSES];
    int n = 0;
    const int on = 1;
    fl_err err = fl_port_resolve(endpoint_of(m, m->rank), &exact);
    if (!err)
        err = fl_address_find(exact.at, at, &n);
    if (!err) {
        m->listener = socket(at[0].at.ss_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (m->opts.held)
            setsockopt(m->listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        if (m->listener < 0 ||
            bind(m->listener, (struct sockaddr *)&at[0].at, at[0].size) ||
            listen(m->listener, 2 * FL_MESH_WORLD))
            err = fl_port_why(exact.at);
    }
    fl_str_fini(&exact);
    return err;
}

static fl_err check_opts(const fl_mesh_opts *o)
{
    if (o->world < 1 || o->world > FL_MESH_WORLD)
        return fl_fail(FL_EINVAL, "collective: %d ranks, expected 1 to %d",
                       o->world, FL_MESH_WORLD);
    if (o->rank < 0 || o->rank >= o->world)
        return fl_fail(FL_EINVAL,
                       "collective: rank %d of %d ranks, expected 0 to %d",
                       o->rank, o->world, o->world - 1);
    for (int i = 0; i < o->world; i++) {
        FL_TRY(fl_endpoint_check(o->endpoints[i], "collective: rank "));
        for (int j = 0; j < i; j++)
            if (!strcmp(o->endpoints[i], o->endpoints[j]))
                return fl_fail(FL_EINVAL,
                               "collective: ranks %d and %d have the same "
                               "endpoint %s",
                               j, i, o->endpoints[i]);
    }
    return FL_OK;
}

/* Whether memory is shared with ranks of this host; no_sharing turns it off. */
static bool opens_locally(const fl_mesh *m)
{
    return !m->opts.no_sharing && knows_host(m);
}

static fl_mesh *new_mesh(const fl_mesh_opts *o)
{
    fl_mesh *m = fl_mem_alloc(sizeof *m);
    m->opts = *o;
    m->rank = o->rank;
    m->world = o->world;
    if (!m->opts.join_timeout)
        m->opts.join_timeout = 120 * FL_SEC;
    if (!m->opts.timeout)
        m->opts.timeout = 60 * FL_SEC;
    if (!m->opts.late_after)
        m->opts.late_after = 5 * FL_SEC;
    m->peers = fl_mem_alloc((size_t)m->world * sizeof *m->peers);
    m->polls = fl_mem_alloc((size_t)(CONTROL_AT + m->world) * sizeof *m->polls);
    m->piece = fl_mem_alloc(PAGE + PIECE);
    char **endpoints = fl_mem_alloc((size_t)m->world * sizeof *endpoints);
    for (int i = 0; i < m->world; i++) {
        m->peers[i].fd[FL_MESH_CONTROL] = m->peers[i].fd[FL_MESH_DATA] =
            m->polls[CONTROL_AT + i].fd = -1;
        endpoints[i] = fl_mem_strdup(o->endpoints[i]);
    }
    m->opts.endpoints = (const char *const *)endpoints;
    m->ranks = fl_ranks_new(&(fl_ranks_opts){m->opts.endpoints, m->world,
                                             m->rank, m->opts.late_after});
    m->key = (fl_greeting_key){o->key, o->key_size};
    m->listener = o->listener ? o->listener : -1;
    if (m->listener >= 0)
        fcntl(m->listener, F_SETFL, fcntl(m->listener, F_GETFL) | O_NONBLOCK);
    fl_entropy entropy = fl_entropy_real();
    fl_greeting_draw(&entropy, m->process);
    fl_share_host(m->host);
    m->local_listener = opens_locally(m) ? fl_share_listen(m->process) : -1;
    return m;
}

static fl_err join_all(fl_mesh *m)
{
    const int64_t now = now_ns();
    int rank;
    fl_mesh_channel c;
    if (m->listener < 0)
        FL_TRY(open_listener(m));
    m->join_until = now + m->opts.join_timeout;
    fl_ranks_wait(m->ranks, m->rank, "", m->opts.join_timeout, now);
    while (fl_ranks_next_server(m->ranks, &rank, &c)) {
        say_notes(m);
        FL_TRY(connect_to(m, rank, c));
    }
    FL_TRY(accept_all(m));
    fl_ranks_end_wait(m->ranks);
    m->local = 1;
    for (int i = 0; i < m->world; i++)
        if (m->peers[i].local) {
            m->local++;
            stop_pacing(m->peers[i].fd[FL_MESH_DATA]);
        }
    m->spin = fl_cores() >= m->local;
    say_notes(m);
    return FL_OK;
}

fl_err fl_mesh_join(const fl_mesh_opts *opts, fl_mesh **out)
{
    fl_err err = check_opts(opts);
    if (err) {
        if (opts->listener)
            close(opts->listener);
        return err;
    }
    fl_mesh *m = new_mesh(opts);
    err = join_all(m);
    if (err) {
        const fl_sentence why = fl_sentence_keep();
        fl_mesh_free(m);
        fl_sentence_restore(&why);
        return err;
    }
    m->key = (fl_greeting_key){0}; /* the caller's; not needed any more */
    *out = m;
    return FL_OK;
}

void fl_mesh_free(fl_mesh *m)
{
    if (!m)
        return;
    fl_ranks_leave(m->ranks);
    say_notes(m);
    for (int i = 0; i < m->world; i++) {
        for (int c = 0; c < FL_MESH_CHANNELS; c++)
            if (m->peers[i].fd[c] >= 0)
                close(m->peers[i].fd[c]);
        fl_share_end(m->peers[i].shared, 2 * fl_fifo_memory_size());
        fl_mem_free((char *)m->opts.endpoints[i]);
    }
    if (m->local_listener >= 0)
        close(m->local_listener);
    if (m->listener >= 0)
        close(m->listener);
    fl_ranks_free(m->ranks);
    fl_mem_free((void *)m->opts.endpoints);
    fl_mem_free(m->peers);
    fl_mem_free(m->polls);
    fl_mem_free(m->piece);
    fl_mem_free(m);
}

int fl_mesh_rank(const fl_mesh *m)
{
    return m->rank;
}

int fl_mesh_world(const fl_mesh *m)
{
    return m->world;
}

int fl_mesh_local(const fl_mesh *m)
{
    return m->local;
}

void fl_mesh_fail(fl_mesh *m, const char *why)
{
    fl_ranks_give_up(m->ranks, why);
    say_notes(m);
}

void fl_mesh_about(fl_mesh *m, const fl_mesh_subject *about)
{
    fl_ranks_about(m->ranks, about);
}

/* --- moves ---------------------------------------------------------------- */

fl_err fl_mesh_begin(fl_mesh *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const fl_err err = fl_ranks_begin_call(m->ranks, fmt, args);
    va_end(args);
    return err;
}

/* The state of a move. */
typedef struct flow {
    fl_move *move;
    size_t out_head, in_head; /* bytes of the heads sent and received */
    size_t out_at, in_at;     /* bytes of the current parts sent and received */
    size_t credit;
    size_t pending; /* bytes of the piece that are not folded */
    size_t grain;   /* least bytes to send while more are being received */
    size_t out_gap,
        in_gap; /* bytes to skip in shared memory before the heads */
    fl_call_head in;
} flow;

static size_t part_size(const fl_parts *p)
{
    return p->at[p->part + 1] - p->at[p->part];
}

/* Go to the next part that has bytes left. */
static void advance_parts(fl_parts *p, size_t *at, int *folds)
{
    while (p->count && *at == part_size(p)) {
        *at = 0;
        p->count--;
        p->part = p->part ? p->part - 1 : p->parts - 1;
        if (folds && *folds)
            (*folds)--;
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static char *call_bytes(const fl_mesh *m)
{
    return (char *)fl_ranks_call(m->ranks);
}

static bool out_done(const flow *f)
{
    return f->move->to < 0 || (f->out_head == HEAD && !f->move->out.count);
}

static bool in_done(const flow *f)
{
    return f->move->from < 0 || (f->in_head == HEAD && !f->move->in.count);
}

/* Bytes of the current part to send now. Few bytes wait until there are more.
 */
static size_t sendable(const flow *f)
{
    const fl_parts *p = &f->move->out;
    const size_t left = p->count ? part_size(p) - f->out_at : 0;
    if (!f->move->forward)
        return left;
    return f->credit < least(left, f->grain) ? 0 : least(left, f->credit);
}

static bool wants_out(const flow *f)
{
    return !out_done(f) && (f->out_head < HEAD || sendable(f));
}

static fl_err send_some(fl_mesh *m, flow *f, bool *moved)
{
    fl_parts *p = &f->move->out;
    const size_t n = least(sendable(f), BURST);
    struct iovec v[2] = {{call_bytes(m) + f->out_head, HEAD - f->out_head},
                         {n ? p->base + p->at[p->part] + f->out_at : NULL, n}};
    const struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
    const ssize_t sent = sendmsg(m->peers[f->move->to].fd[FL_MESH_DATA], &msg,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? FL_OK
                                                 : explain_loss(m, f->move->to);
    const size_t of_head = least((size_t)sent, v[0].iov_len);
    const size_t of_data = (size_t)sent - of_head;
    f->out_head += of_head;
    f->out_at += of_data;
    if (f->move->forward)
        f->credit -= of_data;
    advance_parts(p, &f->out_at, NULL);
    *moved = true;
    return FL_OK;
}

static fl_err check_head(fl_mesh *m, const flow *f)
{
    return tell_all(m, fl_ranks_compare_call(m->ranks, f->move->from, &f->in));
}

/* Where the next bytes of the current part belong. */
static char *in_target(const flow *f)
{
    const fl_parts *p = &f->move->in;
    return p->base + p->at[p->part] + f->in_at;
}

/* Where bytes wait that are folded into the target: half a page off its place
 * in its page. At the same place in their pages, the processor would take a
 * store to one for a store to the other, and wait. */
static char *piece_start(const fl_mesh *m, const flow *f)
{
    return m->piece + ((uintptr_t)in_target(f) + PAGE / 2) % PAGE;
}

/* n bytes of the current part were received, into the piece or into the buffer.
 */
static void take_bytes(fl_mesh *m, flow *f, size_t n)
{
    fl_move *mv = f->move;
    if (mv->folds && n) {
        const char *piece = piece_start(m, f);
        f->pending += n;
        n = f->pending / mv->size * mv->size;
        mv->fold(in_target(f), piece, n / mv->size, true);
        f->pending -= n;
        f->in_at += n;
        memmove(piece_start(m, f), piece + n, f->pending);
    } else {
        f->in_at += n;
    }
    f->credit += n;
    advance_parts(&mv->in, &f->in_at, &mv->folds);
}

static fl_err receive_some(fl_mesh *m, flow *f, bool *moved)
{
    fl_parts *p = &f->move->in;
    const size_t left = p->count ? part_size(p) - f->in_at - f->pending : 0;
    const size_t n = f->move->folds ? least(left, PIECE - f->pending) : left;
    char *to = !n               ? NULL
               : f->move->folds ? piece_start(m, f) + f->pending
                                : in_target(f);
    struct iovec v[2] = {{(char *)&f->in + f->in_head, HEAD - f->in_head},
                         {to, n}};
    struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
    const ssize_t got =
        recvmsg(m->peers[f->move->from].fd[FL_MESH_DATA], &msg, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return FL_OK;
    if (got <= 0)
        return explain_loss(m, f->move->from);
    const size_t of_head = least((size_t)got, v[0].iov_len);
    f->in_head += of_head;
    if (of_head && f->in_head == HEAD)
        FL_TRY(check_head(m, f));
    take_bytes(m, f, (size_t)got - of_head);
    *moved = true;
    return FL_OK;
}

/* --- moves through shared memory ------------------------------------------ */

static fl_err fail_spoiled(fl_mesh *m, int rank)
{
    return fail_mesh(m, fl_fail(FL_EPROTO,
                                "rank %d (%s): the memory that it shares with "
                                "rank %d holds counts that cannot be",
                                rank, endpoint_of(m, rank), m->rank));
}

/* Wake the other side, which sleeps or is about to. If the byte does not fit
 * into the socket, there are unread ones that wake it. */
static void ring_doorbell(const peer *p)
{
    const ssize_t ignored =
        send(p->fd[FL_MESH_DATA], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored;
}

/* Read and discard the bytes that woke this rank. */
static fl_err drain_doorbell(fl_mesh *m, int rank)
{
    char bytes[64];
    const ssize_t n = recv(m->peers[rank].fd[FL_MESH_DATA], bytes, sizeof bytes,
                           MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return FL_OK;
    return explain_loss(m, rank);
}

static fl_err send_shared(fl_mesh *m, flow *f, bool *moved)
{
    peer *p = &m->peers[f->move->to];
    fl_parts *out = &f->move->out;
    char *to;
    const int64_t space = fl_fifo_space(&p->out, &to);
    if (space < 0)
        return fail_spoiled(m, f->move->to);
    const size_t room = (size_t)space;
    const size_t gap = least(room, f->out_gap);
    const size_t of_head = least(room - gap, HEAD - f->out_head);
    const size_t of_data =
        least(room - gap - of_head, least(sendable(f), CHUNK));
    const size_t n = gap + of_head + of_data;
    if (!n)
        return FL_OK;
    memcpy(to + gap, call_bytes(m) + f->out_head, of_head);
    if (of_data)
        memcpy(to + gap + of_head, out->base + out->at[out->part] + f->out_at,
               of_data);
    f->out_gap -= gap;
    f->out_head += of_head;
    f->out_at += of_data;
    if (f->move->forward)
        f->credit -= of_data;
    advance_parts(out, &f->out_at, NULL);
    *moved = true;
    if (fl_fifo_written(&p->out, n))
        ring_doorbell(p);
    return FL_OK;
}

/* Take bytes of the current part from shared memory. Returns how many were
 * used.
 */
static size_t take_shared(flow *f, const char *from, size_t n)
{
    fl_move *mv = f->move;
    const fl_parts *p = &mv->in;
    const size_t left = p->count ? part_size(p) - f->in_at : 0;
    n = least(least(n, left), CHUNK);
    if (mv->folds)
        n = n / mv->size * mv->size;
    if (!n)
        return 0;
    char *to = p->base + p->at[p->part] + f->in_at;
    if (mv->folds)
        mv->fold(to, from, n / mv->size, true);
    else
        memcpy(to, from, n);
    f->in_at += n;
    f->credit += n;
    advance_parts(&mv->in, &f->in_at, &mv->folds);
    return n;
}

static fl_err receive_shared(fl_mesh *m, flow *f, bool *moved)
{
    peer *p = &m->peers[f->move->from];
    const char *from;
    const int64_t ready = fl_fifo_ready(&p->in_data, &from);
    if (ready < 0)
        return fail_spoiled(m, f->move->from);
    const size_t there = (size_t)ready;
    const size_t gap = least(there, f->in_gap);
    const size_t of_head = least(there - gap, HEAD - f->in_head);
    memcpy((char *)&f->in + f->in_head, from + gap, of_head);
    f->in_gap -= gap;
    f->in_head += of_head;
    if (of_head && f->in_head == HEAD)
        FL_TRY(check_head(m, f));
    const size_t n =
        gap + of_head +
        take_shared(f, from + gap + of_head, there - gap - of_head);
    if (!n)
        return FL_OK;
    *moved = true;
    if (fl_fifo_taken(&p->in_data, n))
        ring_doorbell(p);
    return FL_OK;
}

/* --- a move --------------------------------------------------------------- */

static bool is_shared(const fl_mesh *m, int rank)
{
    return rank >= 0 && m->peers[rank].shared;
}

/* Least bytes to send to a rank while more are being received. Over a network
 * they are few, so that it never idles. Within a host the time is that of the
 * processors: a send and a receive at the two ends of a connection take longer
 * at the same time than one after the other (docs/why.md). */
static size_t grain_for(const fl_mesh *m, int rank)
{
    if (is_shared(m, rank))
        return CHUNK;
    return rank >= 0 && m->peers[rank].local ? BURST : GRAIN;
}

static fl_err move_some(fl_mesh *m, flow *f, bool *moved)
{
    const fl_move *mv = f->move;
    if (wants_out(f))
        FL_TRY(is_shared(m, mv->to) ? send_shared(m, f, moved)
                                    : send_some(m, f, moved));
    if (!in_done(f))
        FL_TRY(is_shared(m, mv->from) ? receive_shared(m, f, moved)
                                      : receive_some(m, f, moved));
    return FL_OK;
}

/* Sleep until the move can go on. */
static fl_err wait_to_move(fl_mesh *m, flow *f)
{
    const fl_move *mv = f->move;
    const bool out = wants_out(f), in = !in_done(f);
    const bool out_shared = out && is_shared(m, mv->to);
    const bool in_shared = in && is_shared(m, mv->from);
    struct pollfd a = when_read(-1), b = when_read(-1);
    if (out)
        a = out_shared ? when_read(m->peers[mv->to].fd[FL_MESH_DATA])
                       : when_written(m->peers[mv->to].fd[FL_MESH_DATA]);
    if (in)
        b = when_read(m->peers[mv->from].fd[FL_MESH_DATA]);
    const bool idle =
        (!out_shared || fl_fifo_sleep_writer(&m->peers[mv->to].out)) &&
        (!in_shared || fl_fifo_sleep_reader(&m->peers[mv->from].in_data));
    fl_err err = idle ? wait_some(m, a, b, SLICE) : FL_OK;
    if (out_shared)
        fl_fifo_wake_writer(&m->peers[mv->to].out);
    if (in_shared)
        fl_fifo_wake_reader(&m->peers[mv->from].in_data);
    if (!err && idle && out_shared && m->polls[0].revents)
        err = drain_doorbell(m, mv->to);
    if (!err && idle && in_shared && m->polls[1].revents)
        err = drain_doorbell(m, mv->from);
    return err;
}

/* How long a wait has not slept. */
typedef struct patience {
    int64_t until; /* when it ends; 0: the wait has just begun */
    int yields;
} patience;

/* Whether a wait still does without sleep, which saves the time of a wakeup.
 * With a core for each rank it spins, and yields after a while, because the
 * other rank may run on the same core. With fewer cores it yields a few times:
 * the ranks that run meanwhile often bring what is waited for. */
static bool stay_awake(const fl_mesh *m, patience *p)
{
    if (!m->spin) {
        sched_yield();
        return ++p->yields <= YIELDS;
    }
    const int64_t now = now_ns();
    if (!p->until)
        p->until = now + SPIN;
    if (now > p->until - SPIN + SPIN_ALONE)
        sched_yield();
    return now < p->until;
}

static void end_wait(fl_mesh *m)
{
    fl_ranks_end_wait(m->ranks);
    say_notes(m);
}

fl_err fl_mesh_move(fl_mesh *m, fl_move *move)
{
    flow f = {
        .move = move, .credit = move->credit, .grain = grain_for(m, move->to)};
    if (is_shared(m, move->to))
        f.out_gap = fl_fifo_gap(&m->peers[move->to].out, ALIGN);
    if (is_shared(m, move->from))
        f.in_gap = fl_fifo_gap(&m->peers[move->from].in_data, ALIGN);
    advance_parts(&move->out, &f.out_at, NULL);
    advance_parts(&move->in, &f.in_at, &move->folds);
    bool waits = false; /* the machine knows of a wait for what now lacks */
    patience awake = {0};
    while (!out_done(&f) || !in_done(&f)) {
        bool moved = false;
        FL_TRY(move_some(m, &f, &moved));
        if (moved) {
            if (waits)
                end_wait(m);
            waits = false;
            awake = (patience){0};
            continue;
        }
        if (stay_awake(m, &awake))
            continue;
        if (!waits)
            fl_ranks_wait(m->ranks, in_done(&f) ? move->to : move->from, NULL,
                          m->opts.timeout, now_ns());
        waits = true;
        FL_TRY(wait_to_move(m, &f));
    }
    return FL_OK;
}
