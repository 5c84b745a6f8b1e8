/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - how ranks find each other, move bytes, wait and fail.
 *
 *     join   rank r connects to 0 .. r-1, then accepts r+1 .. world-1. Rank 0
 *            accepts at once, so rank 1 comes through, so rank 2, and so on.
 *     hello  client: HELLO, server: REPLY, client: proof, server: VERDICT.
 *            Each side signs both nonces and the HELLO with the job key.
 *     wait   one poll over the data wanted and every control connection.
 *
 * Whoever waits long tells all others for whom. So a rank that waits for rank
 * 1, which waits for rank 2, can name rank 2.
 *
 * Ranks of one host have a Unix socket as their data connection. The data lie
 * in memory that they share (base/fifo.h); the socket carries only bytes that
 * wake the other side, and its end. Numbers travel in the byte order of the
 * machine; a machine of the other order is refused, because the version reads
 * differently there. */
#include "net/mesh.h"

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/fifo.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/sha256.h"
#include "net/address.h"
#include "net/port.h"
#include "net/share.h"

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
    VERSION = 2,
    NONCE = FL_SHARE_NAME,
    WHAT = 56,         /* bytes of the text of a call */
    CALL = 300,        /* bytes of a call and what it is for, as text */
    REASON = 700,      /* bytes of a sentence that is sent */
    SLICE = 100,       /* ms between two calls of opts.poll */
    RETRY = 50,        /* ms between two attempts to connect */
    GRAIN = 256 << 10, /* bytes that are worth a system call and a wakeup */
    CHUNK = 64 << 10,  /* the same in shared memory */
    ALIGN = 64,        /* of the data of a call in shared memory */
    CONTROL_AT = 2,    /* index of the control connections in `polls` */
    KEEPALIVE_IDLE = 5 /* s; an unreachable host is found after 5 + 3 * 3 s */
};

#define SPIN          (50 * INT64_C(1000)) /* ns of a wait before it sleeps */
#define SPIN_ALONE    (4 * INT64_C(1000))  /* of those, without a yield */
#define STRANGER_TIME (5 * FL_SEC)         /* for a greeting */
#define LOSS_TIME     (2 * FL_SEC) /* for the reason of a connection's end */

typedef enum channel {
    CONTROL,
    DATA,
    CHANNELS,
} channel;

typedef struct hello {
    char magic[8];
    uint32_t version;
    int32_t world, rank;
    int32_t to; /* the rank that the client means to reach */
    uint32_t channel;
    uint32_t unused;
    unsigned char
        process[NONCE]; /* the same for all connections of a process */
    unsigned char nonce[NONCE];
    unsigned char host[FL_SHARE_HOST];
} hello;

typedef struct reply {
    char magic[8];
    uint32_t version;
    uint32_t local; /* both are on one host; the name of the server's socket
                     * for that, if it has one, is `process` */
    unsigned char nonce[NONCE];
    unsigned char process[NONCE];
    unsigned char proof[FL_SHA256];
} reply;

typedef struct verdict {
    uint32_t refused;
    uint32_t shares; /* a descriptor of shared memory follows */
    char reason[REASON];
} verdict;

static const char hello_magic[8] = "FLHELLO", reply_magic[8] = "FLREPLY";

typedef enum note_kind {
    NOTE_WAITS = 1, /* the sender waits for `rank`; -1: no more */
    NOTE_ABORT,     /* `rank` has failed, text tells why */
    NOTE_FAREWELL,  /* the sender needs nobody any more */
} note_kind;

/* A message of a control connection; `size` bytes of text follow. */
typedef struct note {
    uint32_t kind;
    int32_t rank;
    uint32_t size;
    uint32_t unused;
} note;

/* What goes before the data of a call. */
typedef struct head {
    uint64_t number; /* of the call: 1, 2, 3 */
    char what[WHAT];
} head;

typedef struct peer {
    int fd[CHANNELS];     /* -1: not connected */
    int waits_for;        /* the rank it said it waits for; -1: none */
    bool local;           /* it is on this host */
    void *shared;         /* memory for data; NULL: they go over the socket */
    fl_fifo out, in_data; /* in the shared memory */
    bool left;            /* it said farewell */
    bool mute;            /* a note to it did not fit: no more can be sent */
    unsigned char process[NONCE];
    char address[FL_ADDRESS_TEXT];
    unsigned char in[sizeof(note) + REASON]; /* notes that are not complete */
    size_t in_size;
} peer;

/* A wait for one rank, from the last progress on. */
typedef struct wait {
    int rank;
    int64_t since, limit, next_late; /* ns */
    const char *what;                /* "to connect"; NULL: the call at hand */
    bool told;                       /* the others know of it */
} wait;

struct fl_mesh {
    fl_mesh_opts opts;
    int rank, world;
    peer *peers;          /* [world]; the own one has no connections */
    struct pollfd *polls; /* [2 + world]: data out, data in, control of each */
    char *piece;          /* FL_MESH_PIECE bytes on their way to a fold */
    int listener;
    int local_listener; /* for ranks of this host; -1: none */
    unsigned char host[FL_SHARE_HOST];
    int local; /* ranks on this host */
    bool spin; /* this host has a core for each of its ranks */
    unsigned char process[NONCE];
    head call;
    fl_mesh_subject about;
    wait wait;
    char reason[REASON]; /* why the last attempt of the join failed */
    fl_err failed;
    fl_sentence sentence; /* of failed */
};

static int64_t now_ns(void)
{
    return fl_clock_now(fl_clock_real());
}

static const char *endpoint_of(const fl_mesh *m, int rank)
{
    return m->opts.endpoints[rank];
}

/* Bytes from a peer become text that can be shown. */
static void clean_text(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

/* "in all-reduce sum of 10 f32 (call 3, for "fc.b@GRAD" and 2 others, after 7
 * steps)" */
static void describe_call(const fl_mesh *m, char out[CALL])
{
    const fl_mesh_subject *a = &m->about;
    char var[120] = "", others[40] = "", steps[40] = "";
    if (a->var)
        snprintf(var, sizeof var, ", for \"%.80s\"", a->var);
    if (a->var && a->others)
        snprintf(others, sizeof others, " and %d other%s", a->others,
                 a->others == 1 ? "" : "s");
    if (a->steps)
        snprintf(steps, sizeof steps, ", after %lld step%s",
                 (long long)a->steps, a->steps == 1 ? "" : "s");
    if (m->call.number)
        snprintf(out, CALL, "in %s (call %llu%s%s%s)", m->call.what,
                 (unsigned long long)m->call.number, var, others, steps);
    else
        snprintf(out, CALL, "while the ranks connect");
}

/* --- notes ---------------------------------------------------------------- */

static void send_note(fl_mesh *m, int rank, const note *n, const char *text)
{
    peer *p = &m->peers[rank];
    unsigned char out[sizeof *n + REASON];
    if (p->fd[CONTROL] < 0 || p->mute)
        return;
    memcpy(out, n, sizeof *n);
    memcpy(out + sizeof *n, text, n->size);
    const size_t size = sizeof *n + n->size;
    const ssize_t sent =
        send(p->fd[CONTROL], out, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    p->mute = sent != (ssize_t)size;
}

static void send_notes(fl_mesh *m, note_kind kind, int rank, const char *text)
{
    const note n = {.kind = kind,
                    .rank = rank,
                    .size = (uint32_t)strnlen(text, REASON - 1)};
    for (int i = 0; i < m->world; i++)
        send_note(m, i, &n, text);
}

/* The mesh has failed for good, with the sentence of the thread. */
static fl_err fail_mesh(fl_mesh *m, fl_err code)
{
    m->failed = code;
    m->sentence = fl_sentence_keep();
    send_notes(m, NOTE_ABORT, m->rank, m->sentence.text);
    return code;
}

/* A peer has failed, or passes on the failure of another, `origin`. */
static fl_err on_abort(fl_mesh *m, int origin, const char *reason)
{
    m->failed = fl_fail(FL_EIO, "%s (told by rank %d)", reason, origin);
    m->sentence = fl_sentence_keep();
    send_notes(m, NOTE_ABORT, origin, reason); /* not all may be connected */
    return m->failed;
}

static fl_err on_note(fl_mesh *m, int rank, const note *n, const char *text)
{
    peer *p = &m->peers[rank];
    char reason[REASON] = "";
    switch (n->kind) {
    case NOTE_WAITS:
        p->waits_for = n->rank >= 0 && n->rank < m->world ? n->rank : -1;
        return FL_OK;
    case NOTE_FAREWELL:
        p->left = true;
        return FL_OK;
    case NOTE_ABORT:
        memcpy(reason, text, n->size);
        clean_text(reason, sizeof reason);
        return on_abort(m, n->rank, reason);
    }
    return fail_mesh(m,
                     fl_fail(FL_EPROTO, "rank %d (%s) sent a note of kind %u",
                             rank, endpoint_of(m, rank), n->kind));
}

/* A control connection has ended. */
static fl_err end_control(fl_mesh *m, int rank, int error)
{
    peer *p = &m->peers[rank];
    char call[CALL];
    m->polls[CONTROL_AT + rank].fd = -1;
    close(p->fd[CONTROL]);
    p->fd[CONTROL] = -1;
    if (p->left)
        return FL_OK;
    describe_call(m, call);
    if (error == ETIMEDOUT || error == EHOSTUNREACH)
        return fail_mesh(m,
                         fl_fail(FL_EIO,
                                 "rank %d (%s) cannot be reached any more "
                                 "(%s): look at its host and network",
                                 rank, endpoint_of(m, rank), strerror(error)));
    return fail_mesh(m,
                     fl_fail(FL_EIO,
                             "rank %d (%s) has died: its connection ended "
                             "without a farewell, rank %d was %s; the "
                             "output of rank %d tells why",
                             rank, endpoint_of(m, rank), m->rank, call, rank));
}

/* All notes that have come from a rank. */
static fl_err read_notes(fl_mesh *m, int rank)
{
    peer *p = &m->peers[rank];
    while (p->fd[CONTROL] >= 0) {
        const ssize_t got = recv(p->fd[CONTROL], p->in + p->in_size,
                                 sizeof p->in - p->in_size, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return FL_OK;
        if (got <= 0)
            return end_control(m, rank, got ? errno : 0);
        p->in_size += (size_t)got;
        for (note n; p->in_size >= sizeof n;) {
            memcpy(&n, p->in, sizeof n);
            if (n.size >= REASON)
                return fail_mesh(m, fl_fail(FL_EPROTO,
                                            "rank %d (%s) sent a note of %u "
                                            "bytes, %d at most",
                                            rank, endpoint_of(m, rank), n.size,
                                            REASON - 1));
            const size_t size = sizeof n + n.size;
            if (p->in_size < size)
                break;
            FL_TRY(on_note(m, rank, &n, (const char *)p->in + sizeof n));
            p->in_size -= size;
            memmove(p->in, p->in + size, p->in_size);
        }
    }
    return FL_OK;
}

/* --- waits ---------------------------------------------------------------- */

static void begin_wait(fl_mesh *m, int rank, const char *what, int64_t limit)
{
    const int64_t now = now_ns();
    m->wait = (wait){.rank = rank,
                     .what = what,
                     .since = now,
                     .limit = limit,
                     .next_late = now + m->opts.late_after};
}

static void end_wait(fl_mesh *m)
{
    if (m->wait.told)
        send_notes(m, NOTE_WAITS, -1, "");
    m->wait.told = false;
}

/* Who holds up the wait: follow what ranks said of their own waits. */
static int find_late_rank(const fl_mesh *m)
{
    int rank = m->wait.rank;
    for (int i = 0; i < m->world && m->peers[rank].waits_for >= 0; i++)
        rank = m->peers[rank].waits_for;
    return rank == m->rank ? m->wait.rank : rank;
}

/* "rank 0 has waited 5.0 s for rank 1 (a:1), which waits for rank 2 (b:1), in
 * barrier (call 3)" */
static void describe_wait(const fl_mesh *m, char *out, size_t size)
{
    const wait *w = &m->wait;
    const int late = find_late_rank(m);
    char via[200] = "", call[CALL] = "";
    if (late != w->rank)
        snprintf(via, sizeof via, ", which waits for rank %d (%s),", late,
                 endpoint_of(m, late));
    describe_call(m, call);
    snprintf(out, size, "rank %d has waited %.1f s for rank %d (%s)%s %s%s%s",
             m->rank, (double)(now_ns() - w->since) / (double)FL_SEC, w->rank,
             endpoint_of(m, w->rank), via, w->what ? w->what : call,
             m->reason[0] ? ": " : "", m->reason);
}

/* Until the next sentence about a wait: as long as the wait so far, but not
 * longer than a minute where the first one came after five seconds. */
static int64_t late_pause(const fl_mesh *m, int64_t waited)
{
    const int64_t least = m->opts.late_after, most = 12 * least;
    return waited < least ? least : waited > most ? most : waited;
}

/* What time and the caller have to say to a wait. */
static fl_err check_wait(fl_mesh *m)
{
    wait *w = &m->wait;
    char text[REASON + 400];
    const int64_t now = now_ns();
    if (now >= w->next_late) {
        w->next_late = now + late_pause(m, now - w->since);
        if (!w->told)
            send_notes(m, NOTE_WAITS, w->rank, "");
        w->told = true;
        describe_wait(m, text, sizeof text);
        if (m->opts.late)
            m->opts.late(m->opts.user, text);
    }
    if (now - w->since >= w->limit) {
        describe_wait(m, text, sizeof text);
        return fail_mesh(m, fl_fail(FL_ETIMEOUT, "%s (the limit is %.1f s)",
                                    text, (double)w->limit / (double)FL_SEC));
    }
    if (m->opts.poll && m->opts.poll(m->opts.user))
        return fail_mesh(m, fl_fail(FL_EINTR,
                                    "rank %d was interrupted while it "
                                    "waited for rank %d",
                                    m->rank, w->rank));
    return FL_OK;
}

static struct pollfd when_read(int fd)
{
    return (struct pollfd){.fd = fd, .events = POLLIN};
}

static struct pollfd when_written(int fd)
{
    return (struct pollfd){.fd = fd, .events = POLLOUT};
}

/* Sleep until one of two descriptors (-1: none) is ready, a note has come or a
 * slice of time is over. Fails only if the mesh fails. */
static fl_err wait_some(fl_mesh *m, struct pollfd a, struct pollfd b, int slice)
{
    const int64_t now = now_ns();
    int64_t most = m->wait.since + m->wait.limit - now;
    if (m->wait.next_late - now < most)
        most = m->wait.next_late - now;
    if (most < slice * FL_MS)
        slice = most > 0 ? (int)(most / FL_MS) + 1 : 0;
    m->polls[0] = a;
    m->polls[1] = b;
    const int n = poll(m->polls, (nfds_t)(CONTROL_AT + m->world), slice);
    for (int i = 0; n > 0 && i < m->world; i++)
        if (m->polls[CONTROL_AT + i].revents)
            FL_TRY(read_notes(m, i));
    if (n > 0 && (m->polls[0].revents || m->polls[1].revents) &&
        now_ns() < m->wait.since + m->wait.limit)
        return FL_OK; /* a descriptor may be ready for ever, and of no use */
    return check_wait(m);
}

/* The data connection of a rank has ended: its control connection knows why,
 * now or soon. */
static fl_err explain_loss(fl_mesh *m, int rank)
{
    peer *p = &m->peers[rank];
    const int64_t until = now_ns() + LOSS_TIME;
    begin_wait(m, rank, NULL, m->opts.timeout);
    while (!p->left && p->fd[CONTROL] >= 0 && now_ns() < until)
        FL_TRY(wait_some(m, when_read(-1), when_read(-1), SLICE));
    char call[CALL];
    describe_call(m, call);
    if (p->left)
        return fail_mesh(m, fl_fail(FL_EIO,
                                    "rank %d (%s) has ended its part of the "
                                    "job, rank %d still needs it %s: all ranks "
                                    "must make the same calls",
                                    rank, endpoint_of(m, rank), m->rank, call));
    return fail_mesh(m, fl_fail(FL_EIO,
                                "rank %d (%s): its data connection was lost %s",
                                rank, endpoint_of(m, rank), call));
}

/* --- join ----------------------------------------------------------------- */

static void set_reason(fl_mesh *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void set_reason(fl_mesh *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(m->reason, sizeof m->reason, fmt, args);
    va_end(args);
}

/* All n bytes, in or out. False: the connection ended, `until` passed or the
 * mesh failed. */
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

static void prove(const fl_mesh *m, const char *side, const hello *h,
                  const reply *r, unsigned char out[FL_SHA256])
{
    unsigned char text[8 + sizeof *h + NONCE] = {0};
    memcpy(text, side, strlen(side));
    memcpy(text + 8, h, sizeof *h);
    memcpy(text + 8 + sizeof *h, r->nonce, NONCE);
    fl_hmac_sha256(m->opts.key, m->opts.key_size, text, sizeof text, out);
}

static void draw_bytes(unsigned char out[NONCE])
{
    fl_entropy e = fl_entropy_real();
    for (size_t i = 0; i < NONCE; i += 8) {
        const uint64_t x = e.draw(&e);
        memcpy(out + i, &x, 8);
    }
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

static void set_peer(fl_mesh *m, int rank, channel c, int fd)
{
    m->peers[rank].fd[c] = fd;
    if (c == CONTROL)
        m->polls[CONTROL_AT + rank] =
            (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Each direction has its half of the memory; the lower rank writes the first.
 */
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
            return true; /* there is none: data go over the socket */
        if (errno != EAGAIN || now_ns() >= until ||
            wait_some(m, when_read(fd), when_read(-1), SLICE))
            return false;
    }
    set_memory(m, rank, memory);
    return true;
}

/* The client's half. True: the server is the rank that was meant. */
static bool greet_server(fl_mesh *m, int rank, channel c, int fd)
{
    const int64_t until = m->wait.since + m->wait.limit;
    unsigned char proof[FL_SHA256];
    reply r;
    verdict v;
    hello h = {.version = VERSION,
               .world = m->world,
               .rank = m->rank,
               .to = rank,
               .channel = c};
    memcpy(h.magic, hello_magic, sizeof h.magic);
    memcpy(h.process, m->process, sizeof h.process);
    memcpy(h.host, m->host, sizeof h.host);
    draw_bytes(h.nonce);
    set_reason(m, "it accepts connections but has not answered");
    if (!transfer(m, fd, &h, sizeof h, true, until) ||
        !transfer(m, fd, &r, sizeof r, false, until))
        return false;
    if (memcmp(r.magic, reply_magic, sizeof r.magic) || r.version != VERSION) {
        set_reason(m,
                   "what listens there is not a rank of a job, or of another "
                   "version of Fluid");
        return false;
    }
    prove(m, "server", &h, &r, proof);
    const bool known = fl_sha256_same(proof, r.proof);
    prove(m, "client", &h, &r, proof);
    if (!transfer(m, fd, proof, sizeof proof, true, until) ||
        !transfer(m, fd, &v, sizeof v, false, until))
        return false;
    if (!known) {
        set_reason(m, "it has another job key: give all ranks the same one");
        return false;
    }
    clean_text(v.reason, sizeof v.reason);
    if (v.refused)
        fail_mesh(m,
                  fl_fail(FL_EINVAL, "%s (told by rank %d)", v.reason, rank));
    if (v.refused)
        return false;
    m->peers[rank].local = r.local;
    memcpy(m->peers[rank].process, r.process, sizeof r.process);
    return !v.shares || receive_memory(m, rank, fd, until);
}

/* One attempt to connect. -1: the reason is set, or the mesh failed. */
static int connect_once(fl_mesh *m, int rank)
{
    fl_address at[FL_ADDRESSES];
    int n, error = 0;
    if (fl_address_find(endpoint_of(m, rank), at, &n)) {
        set_reason(m, "%s", fl_errmsg());
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
            return fd;
        close(fd);
        if (m->failed)
            return -1;
    }
    set_reason(m, "%s",
               error == EINPROGRESS ? "its host does not answer"
                                    : strerror(error));
    return -1;
}

/* Data of ranks on this host go over a Unix socket; where it cannot be had,
 * over TCP as all others. */
static int connect_channel(fl_mesh *m, int rank, channel c)
{
    if (c == DATA && m->local_listener >= 0 && m->peers[rank].local) {
        const int fd = fl_share_connect(m->peers[rank].process);
        if (fd >= 0)
            return fd;
    }
    return connect_once(m, rank);
}

static fl_err connect_to(fl_mesh *m, int rank, channel c)
{
    for (;;) {
        const int fd = connect_channel(m, rank, c);
        if (fd >= 0 && greet_server(m, rank, c, fd)) {
            set_socket(fd);
            set_peer(m, rank, c, fd);
            m->reason[0] = 0;
            return FL_OK;
        }
        if (fd >= 0)
            close(fd);
        if (m->failed)
            return m->failed;
        FL_TRY(wait_some(m, when_read(-1), when_read(-1), RETRY));
    }
}

/* May the client have this place? Its key is right. Err: EINVAL. */
static fl_err check_hello(fl_mesh *m, const hello *h, const char *address)
{
    const peer *p;
    if (h->version != VERSION)
        return fl_fail(FL_EINVAL,
                       "%s speaks version %u of the collective protocol, rank "
                       "%d version %d: install the same Fluid everywhere",
                       address, h->version, m->rank, VERSION);
    if (h->world != m->world)
        return fl_fail(FL_EINVAL,
                       "rank %d (%s) is of a job of %d ranks, rank %d (%s) of "
                       "one of %d: give all ranks the same list of endpoints",
                       h->rank, address, h->world, m->rank,
                       endpoint_of(m, m->rank), m->world);
    if (h->to != m->rank)
        return fl_fail(FL_EINVAL,
                       "rank %d (%s) looks for rank %d at %s, which is rank "
                       "%d: give all ranks the endpoints in the same order",
                       h->rank, address, h->to, endpoint_of(m, m->rank),
                       m->rank);
    if (h->rank == m->rank)
        return fl_fail(FL_EINVAL,
                       "two processes are rank %d: %s and %s; give each its "
                       "own number",
                       h->rank, endpoint_of(m, m->rank), address);
    if (h->rank < m->rank || h->rank >= m->world || h->channel >= CHANNELS)
        return fl_fail(FL_EINVAL,
                       "%s says it is rank %d, which does not connect to rank "
                       "%d of %d",
                       address, h->rank, m->rank, m->world);
    p = &m->peers[h->rank];
    if (p->address[0] && memcmp(p->process, h->process, NONCE))
        return fl_fail(FL_EINVAL,
                       "two processes are rank %d: %s and %s; give each its "
                       "own number",
                       h->rank, p->address, address);
    return FL_OK;
}

/* False: which other ranks are on this host cannot be told. */
static bool knows_host(const fl_mesh *m)
{
    static const unsigned char none[FL_SHARE_HOST];
    return memcmp(m->host, none, sizeof none);
}

/* The server's half. True: the socket is a peer's now. */
static bool greet_client(fl_mesh *m, int fd, const char *address,
                         bool over_unix)
{
    const int64_t until = now_ns() + STRANGER_TIME;
    unsigned char want[FL_SHA256], proof[FL_SHA256];
    reply r = {.version = VERSION};
    verdict v = {0};
    hello h;
    if (!transfer(m, fd, &h, sizeof h, false, until) ||
        memcmp(h.magic, hello_magic, sizeof h.magic))
        return false;
    memcpy(r.magic, reply_magic, sizeof r.magic);
    draw_bytes(r.nonce);
    memcpy(r.process, m->process, sizeof r.process);
    r.local = knows_host(m) && !memcmp(h.host, m->host, sizeof h.host);
    prove(m, "server", &h, &r, r.proof);
    prove(m, "client", &h, &r, want);
    if (!transfer(m, fd, &r, sizeof r, true, until) ||
        !transfer(m, fd, proof, sizeof proof, false, until))
        return false;
    if (!fl_sha256_same(want, proof)) { /* a stranger does not end the job */
        set_reason(m, "%s says it is rank %d but has another job key", address,
                   h.rank);
        v.refused = 1;
        snprintf(v.reason, sizeof v.reason, "%s", m->reason);
        transfer(m, fd, &v, sizeof v, true, until);
        return false;
    }
    const fl_err err = check_hello(m, &h, address);
    if (err) {
        const fl_sentence why = fl_sentence_keep();
        v.refused = 1;
        memcpy(v.reason, why.text, sizeof v.reason - 1);
        transfer(m, fd, &v, sizeof v, true, until);
        fl_sentence_restore(&why);
        if (!m->failed)
            fail_mesh(m, err);
        return false;
    }
    if (m->peers[h.rank].fd[h.channel] >= 0) /* an attempt that was repeated */
        close(m->peers[h.rank].fd[h.channel]);
    set_peer(m, h.rank, (channel)h.channel, fd);
    if (h.channel == DATA) {
        fl_share_end(m->peers[h.rank].shared, 2 * fl_fifo_memory_size());
        m->peers[h.rank].shared = NULL;
    }
    memcpy(m->peers[h.rank].process, h.process, NONCE);
    if (!over_unix)
        snprintf(m->peers[h.rank].address, FL_ADDRESS_TEXT, "%s", address);
    m->reason[0] = 0;
    m->peers[h.rank].local = r.local;
    v.shares = over_unix && h.channel == DATA;
    if (!transfer(m, fd, &v, sizeof v, true, until))
        return true; /* a loss is seen as a death */
    void *memory =
        v.shares ? fl_share_send(fd, 2 * fl_fifo_memory_size()) : NULL;
    if (memory)
        set_memory(m, h.rank, memory);
    return true;
}

/* The next rank that has not connected; -1: all have. */
static int find_missing(const fl_mesh *m)
{
    for (int i = m->rank + 1; i < m->world; i++)
        if (m->peers[i].fd[CONTROL] < 0 || m->peers[i].fd[DATA] < 0)
            return i;
    return -1;
}

/* -1: nobody of this user has come. */
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
    for (int rank; (rank = find_missing(m)) >= 0;) {
        fl_address from = {.size = sizeof from.at};
        char address[FL_ADDRESS_TEXT];
        m->wait.rank = rank;
        m->wait.what = "to connect";
        const int local = accept_local(m);
        const int fd = local >= 0
                           ? local
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
            set_socket(fd);
            fl_address_text(&from, address);
        }
        if (!greet_client(m, fd, address, local >= 0))
            close(fd);
        if (m->failed)
            return m->failed;
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

/* Whether memory is shared with ranks of this host. Tests turn it off, and
 * whoever doubts it. */
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
    m->piece = fl_mem_alloc(FL_MESH_PIECE);
    char **endpoints = fl_mem_alloc((size_t)m->world * sizeof *endpoints);
    for (int i = 0; i < m->world; i++) {
        m->peers[i].fd[CONTROL] = m->peers[i].fd[DATA] = -1;
        m->peers[i].waits_for = m->polls[CONTROL_AT + i].fd = -1;
        endpoints[i] = fl_mem_strdup(o->endpoints[i]);
    }
    m->opts.endpoints = (const char *const *)endpoints;
    m->listener = o->listener ? o->listener : -1;
    if (m->listener >= 0)
        fcntl(m->listener, F_SETFL, fcntl(m->listener, F_GETFL) | O_NONBLOCK);
    draw_bytes(m->process);
    fl_share_host(m->host);
    m->local_listener = opens_locally(m) ? fl_share_listen(m->process) : -1;
    return m;
}

static fl_err join_all(fl_mesh *m)
{
    if (m->listener < 0)
        FL_TRY(open_listener(m));
    begin_wait(m, m->rank, "", m->opts.join_timeout);
    for (int i = 0; i < m->rank; i++)
        for (int c = 0; c < CHANNELS; c++) {
            m->wait.rank = i;
            m->wait.what = "to listen";
            FL_TRY(connect_to(m, i, (channel)c));
        }
    FL_TRY(accept_all(m));
    end_wait(m);
    m->local = 1;
    for (int i = 0; i < m->world; i++)
        m->local += m->peers[i].local;
    m->spin = fl_cores() >= m->local;
    m->reason[0] = 0;
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
    m->opts.key = NULL; /* the caller's; not needed any more */
    *out = m;
    return FL_OK;
}

void fl_mesh_free(fl_mesh *m)
{
    if (!m)
        return;
    send_notes(m, NOTE_FAREWELL, -1, "");
    for (int i = 0; i < m->world; i++) {
        for (int c = 0; c < CHANNELS; c++)
            if (m->peers[i].fd[c] >= 0)
                close(m->peers[i].fd[c]);
        fl_share_end(m->peers[i].shared, 2 * fl_fifo_memory_size());
        fl_mem_free((char *)m->opts.endpoints[i]);
    }
    if (m->local_listener >= 0)
        close(m->local_listener);
    if (m->listener >= 0)
        close(m->listener);
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
    if (!m->failed)
        fail_mesh(m, fl_fail(FL_EIO, "rank %d (%s) has failed: %s", m->rank,
                             endpoint_of(m, m->rank), why));
}

void fl_mesh_about(fl_mesh *m, const fl_mesh_subject *about)
{
    m->about = *about;
}

/* --- moves ---------------------------------------------------------------- */

fl_err fl_mesh_begin(fl_mesh *m, const char *fmt, ...)
{
    va_list args;
    if (m->failed) {
        fl_sentence_restore(&m->sentence);
        return m->failed;
    }
    m->call.number++;
    memset(m->call.what, 0, WHAT);
    va_start(args, fmt);
    vsnprintf(m->call.what, WHAT, fmt, args);
    va_end(args);
    return FL_OK;
}

/* A move under way. */
typedef struct flow {
    fl_move *move;
    size_t out_head, in_head; /* bytes of the heads that have gone and come */
    size_t out_at, in_at;     /* bytes of the current parts that are done */
    size_t credit;
    size_t pending; /* bytes in m->piece that are not folded */
    size_t grain;   /* bytes that are worth sending while more come in */
    size_t out_gap, in_gap; /* bytes in shared memory before the heads */
    head in;
} flow;

static size_t part_size(const fl_parts *p)
{
    return p->at[p->part + 1] - p->at[p->part];
}

/* On to the next part that has bytes left. */
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

static bool out_done(const flow *f)
{
    return f->move->to < 0 ||
           (f->out_head == sizeof(head) && !f->move->out.count);
}

static bool in_done(const flow *f)
{
    return f->move->from < 0 ||
           (f->in_head == sizeof(head) && !f->move->in.count);
}

/* Bytes of the current part that may be sent now: crumbs wait for more. */
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
    return !out_done(f) && (f->out_head < sizeof(head) || sendable(f));
}

static fl_err send_some(fl_mesh *m, flow *f, bool *moved)
{
    fl_parts *p = &f->move->out;
    const size_t n = least(sendable(f), FL_MESH_PIECE);
    struct iovec v[2] = {
        {(char *)&m->call + f->out_head, sizeof(head) - f->out_head},
        {n ? p->base + p->at[p->part] + f->out_at : NULL, n}};
    const struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
    const ssize_t sent = sendmsg(m->peers[f->move->to].fd[DATA], &msg,
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

static fl_err check_head(fl_mesh *m, flow *f)
{
    if (!memcmp(&f->in, &m->call, sizeof f->in))
        return FL_OK;
    char call[CALL];
    describe_call(m, call);
    clean_text(f->in.what, WHAT);
    return fail_mesh(
        m, fl_fail(FL_EPROTO,
                   "rank %d (%s) is in %s (call %llu) while rank %d is %s: all "
                   "ranks must make the same calls",
                   f->move->from, endpoint_of(m, f->move->from), f->in.what,
                   (unsigned long long)f->in.number, m->rank, call));
}

/* n bytes of the current part have come, to m->piece or to their place. */
static void take_bytes(fl_mesh *m, flow *f, size_t n)
{
    fl_move *mv = f->move;
    if (mv->folds && n) {
        f->pending += n;
        n = f->pending / mv->size * mv->size;
        mv->fold(mv->in.base + mv->in.at[mv->in.part] + f->in_at, m->piece,
                 n / mv->size, true);
        f->pending -= n;
        memmove(m->piece, m->piece + n, f->pending);
    }
    f->in_at += n;
    f->credit += n;
    advance_parts(&mv->in, &f->in_at, &mv->folds);
}

static fl_err receive_some(fl_mesh *m, flow *f, bool *moved)
{
    fl_parts *p = &f->move->in;
    size_t n = p->count ? part_size(p) - f->in_at - f->pending : 0;
    char *to = n ? p->base + p->at[p->part] + f->in_at : NULL;
    if (f->move->folds) {
        n = least(n, FL_MESH_PIECE - f->pending);
        to = m->piece + f->pending;
    }
    struct iovec v[2] = {
        {(char *)&f->in + f->in_head, sizeof(head) - f->in_head}, {to, n}};
    struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
    const ssize_t got =
        recvmsg(m->peers[f->move->from].fd[DATA], &msg, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return FL_OK;
    if (got <= 0)
        return explain_loss(m, f->move->from);
    const size_t of_head = least((size_t)got, v[0].iov_len);
    f->in_head += of_head;
    if (of_head && f->in_head == sizeof(head))
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

/* The other side sleeps, or is about to. A byte that does not fit is not
 * needed: there are others that it has not read. */
static void ring_doorbell(const peer *p)
{
    const ssize_t ignored =
        send(p->fd[DATA], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored;
}

/* What wakes up a rank is read and forgotten. */
static fl_err drain_doorbell(fl_mesh *m, int rank)
{
    char bytes[64];
    const ssize_t n =
        recv(m->peers[rank].fd[DATA], bytes, sizeof bytes, MSG_DONTWAIT);
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
    const size_t of_head = least(room - gap, sizeof(head) - f->out_head);
    const size_t of_data =
        least(room - gap - of_head, least(sendable(f), CHUNK));
    const size_t n = gap + of_head + of_data;
    if (!n)
        return FL_OK;
    memcpy(to + gap, (char *)&m->call + f->out_head, of_head);
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

/* Bytes at `from` belong to the current part; how many of them were used. */
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
    const size_t of_head = least(there - gap, sizeof(head) - f->in_head);
    memcpy((char *)&f->in + f->in_head, from + gap, of_head);
    f->in_gap -= gap;
    f->in_head += of_head;
    if (of_head && f->in_head == sizeof(head))
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
        a = out_shared ? when_read(m->peers[mv->to].fd[DATA])
                       : when_written(m->peers[mv->to].fd[DATA]);
    if (in)
        b = when_read(m->peers[mv->from].fd[DATA]);
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

/* A wait spins, so that no time is lost to a wakeup. The other rank may share
 * the core, whatever their number: after a while others may run. */
static bool keep_spinning(int64_t *until)
{
    const int64_t now = now_ns();
    if (!*until)
        *until = now + SPIN;
    if (now > *until - SPIN + SPIN_ALONE)
        sched_yield();
    return now < *until;
}

fl_err fl_mesh_move(fl_mesh *m, fl_move *move)
{
    flow f = {.move = move,
              .credit = move->credit,
              .grain = is_shared(m, move->to) ? CHUNK : GRAIN};
    if (is_shared(m, move->to))
        f.out_gap = fl_fifo_gap(&m->peers[move->to].out, ALIGN);
    if (is_shared(m, move->from))
        f.in_gap = fl_fifo_gap(&m->peers[move->from].in_data, ALIGN);
    advance_parts(&move->out, &f.out_at, NULL);
    advance_parts(&move->in, &f.in_at, &move->folds);
    bool waits = false; /* m->wait is that of the bytes that now lack */
    int64_t spin_until = 0;
    while (!out_done(&f) || !in_done(&f)) {
        bool moved = false;
        FL_TRY(move_some(m, &f, &moved));
        if (moved) {
            if (waits)
                end_wait(m);
            waits = false;
            spin_until = 0;
            continue;
        }
        if (m->spin && keep_spinning(&spin_until))
            continue;
        if (!waits)
            begin_wait(m, in_done(&f) ? move->to : move->from, NULL,
                       m->opts.timeout);
        waits = true;
        FL_TRY(wait_to_move(m, &f));
    }
    return FL_OK;
}
