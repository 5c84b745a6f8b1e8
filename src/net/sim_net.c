/* SPDX-License-Identifier: Apache-2.0 */
/* sim_net.c - events, sockets, and the threads that take turns. */
#include "net/sim_net.h"

#include "base/clock.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/vec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    FIRST_FD = 1 << 20, /* no real descriptor is that large */
    FIRST_PORT = 7000,
    PIECE = 16 << 10, /* bytes that travel together, at most */
    NOBODY = -1,
};

#define CALL_TIME   1000          /* ns of a system call */
#define SILENCE     (14 * FL_SEC) /* until a connection counts as dead */
#define NO_DEADLINE INT64_MAX

typedef enum sim_kind {
    SIM_START,
    SIM_WAKE,    /* a process looks again whether it can go on */
    SIM_REACH,   /* a connection attempt comes to a listener */
    SIM_ANSWER,  /* what became of the attempt comes to the client */
    SIM_ARRIVE,  /* bytes come to a socket */
    SIM_END,     /* the other end of a socket has ended */
    SIM_SILENCE, /* a host that was cut off has been silent for long */
    SIM_FAULT,
} sim_kind;

typedef struct sim_event {
    int64_t at;
    uint64_t order; /* decides between events of one time */
    sim_kind kind;
    int process; /* that starts or wakes; the one that is reached otherwise */
    int from;    /* the process whose bytes or end these are */
    int sock;
    int peer; /* what the listener made, in an ANSWER */
    int error;
    uint64_t sleep; /* number of the sleep that a WAKE ends */
    char *bytes;
    size_t size;
    void (*fault)(void *user);
    void *user;
} sim_event;

typedef enum sock_state {
    SOCK_NEW,
    SOCK_LISTENING,
    SOCK_CONNECTING,
    SOCK_OPEN,
    SOCK_CLOSED, /* by its owner */
} sock_state;

typedef struct sim_sock {
    sock_state state;
    int owner, peer; /* process; socket */
    int port;        /* of the process that it listens for or came from */
    int error;       /* for SO_ERROR, or of the end */
    bool ended;      /* nothing more comes from the other end */
    FL_VEC(char) in;
    int64_t in_at;        /* bytes of `in` that were read */
    size_t unread;        /* sent to this socket and not read, also in flight */
    int64_t last_arrival; /* pieces do not overtake each other */
    FL_VEC(int) backlog;  /* sockets to be accepted */
} sim_sock;

typedef struct sim_process {
    sim_net *net;
    int index;
    pthread_t thread;
    sem_t go;
    bool started, done, killed;
    int listener; /* socket */
    int open;     /* sockets that were not closed when it ended */
    void (*run)(void *user, int i);
    void *user;
    struct pollfd *fds; /* what it sleeps for */
    nfds_t n;
    int64_t deadline, stopped_until, isolated_until;
    uint64_t sleep; /* counts the sleeps */
    bool sleeps;
    char endpoint[40];
} sim_process;

struct sim_net {
    sim_net_opts opts;
    fl_fake_clock clock;
    fl_entropy dice;
    uint64_t order, trace;
    int64_t events;
    FL_VEC(sim_event) heap;
    FL_VEC(sim_sock) sock;
    sim_process process[SIM_PROCESSES];
    sem_t back; /* the process that ran sleeps or has ended */
};

/* The calls of the linker have no argument for them. */
static sim_net *the_net;
static _Thread_local int current = NOBODY;

/* --- dice, time and events ------------------------------------------------ */

uint64_t sim_net_dice(sim_net *n, uint64_t below)
{
    return n->dice.draw(&n->dice) % below;
}

int64_t sim_net_now(const sim_net *n)
{
    return n->clock.ns;
}

uint64_t sim_net_trace(const sim_net *n)
{
    return n->trace;
}

int64_t sim_net_events(const sim_net *n)
{
    return n->events;
}

static bool is_before(const sim_event *a, const sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void add_event(sim_net *n, int64_t at, sim_event e)
{
    e.at = at > n->clock.ns ? at : n->clock.ns;
    e.order = ++n->order;
    fl_push(&n->heap, e);
    int64_t i = n->heap.n - 1;
    for (; i > 0 && is_before(&e, &n->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        n->heap.at[i] = n->heap.at[(i - 1) / 2];
    n->heap.at[i] = e;
}

static sim_event take_event(sim_net *n)
{
    const sim_event top = n->heap.at[0], last = n->heap.at[--n->heap.n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < n->heap.n; i = child) {
        if (child + 1 < n->heap.n &&
            is_before(&n->heap.at[child + 1], &n->heap.at[child]))
            child++;
        if (!is_before(&n->heap.at[child], &last))
            break;
        n->heap.at[i] = n->heap.at[child];
    }
    n->heap.at[i] = last;
    return top;
}

static void mix_trace(sim_net *n, uint64_t x)
{
    n->trace = (n->trace ^ x) * 1099511628211u;
}

static int64_t draw_delay(sim_net *n)
{
    const int64_t d = 1 + (int64_t)sim_net_dice(n, (uint64_t)n->opts.delay);
    return sim_net_dice(n, 4) ? d / 16 : d; /* most are quick, some are late */
}

/* --- sockets -------------------------------------------------------------- */

static int new_sock(sim_net *n, sim_sock s)
{
    fl_push(&n->sock, s);
    return (int)n->sock.n - 1;
}

static bool is_up(const sim_process *p)
{
    return p->started && !p->done && !p->killed;
}

/* It is in order after all that was sent to the socket before. */
static int64_t arrival_at(sim_net *n, sim_sock *to)
{
    const int64_t at = n->clock.ns + draw_delay(n);
    if (at > to->last_arrival)
        to->last_arrival = at;
    return to->last_arrival;
}

/* The other end of a socket hears that this one has ended. */
static void end_sock(sim_net *n, int sock, int error)
{
    sim_sock *s = &n->sock.at[sock];
    if (s->state != SOCK_OPEN || s->peer < 0)
        return;
    sim_sock *peer = &n->sock.at[s->peer];
    add_event(n, arrival_at(n, peer),
              (sim_event){.kind = SIM_END,
                          .process = peer->owner,
                          .from = s->owner,
                          .sock = s->peer,
                          .error = error});
}

static void close_sock(sim_net *n, int sock)
{
    sim_sock *s = &n->sock.at[sock];
    end_sock(n, sock, 0);
    s->state = SOCK_CLOSED;
    for (int64_t i = 0; i < s->backlog.n; i++)
        close_sock(n, s->backlog.at[i]);
    s = &n->sock.at[sock];
    fl_vec_fini(&s->in);
    fl_vec_fini(&s->backlog);
}

static int close_all(sim_net *n, int owner)
{
    int open = 0;
    for (int i = 0; i < n->sock.n; i++)
        if (n->sock.at[i].owner == owner &&
            n->sock.at[i].state != SOCK_CLOSED) {
            close_sock(n, i);
            open++;
        }
    return open;
}

static short ready_events(const sim_sock *s, short wanted)
{
    short found = 0;
    if (s->state == SOCK_LISTENING && s->backlog.n)
        found |= POLLIN;
    if (s->state == SOCK_OPEN && (s->in.n > s->in_at || s->ended))
        found |= POLLIN;
    if (s->state == SOCK_OPEN)
        found |=
            the_net->sock.at[s->peer].unread < the_net->opts.window || s->ended
                ? POLLOUT
                : 0;
    if (s->state == SOCK_NEW) /* an attempt to connect has failed */
        found |= POLLOUT | POLLERR;
    return found & (short)(wanted | POLLERR);
}

/* --- processes ------------------------------------------------------------ */

/* The thread of a process sleeps until the scheduler gives it the turn. */
static void give_turn_back(sim_process *p)
{
    sem_post(&p->net->back);
    while (sem_wait(&p->go))
        continue;
}

static void run_turn(sim_process *p)
{
    p->sleeps = false;
    sem_post(&p->go);
    while (sem_wait(&p->net->back))
        continue;
}

static void *run_process(void *arg)
{
    sim_process *p = arg;
    while (sem_wait(&p->go))
        continue;
    if (!p->started) /* it was killed before */
        return NULL;
    current = p->index;
    p->run(p->user, p->index);
    current = NOBODY;
    const int open = close_all(p->net, p->index);
    p->open = p->killed ? 0 : open;
    p->done = true;
    sem_post(&p->net->back);
    return NULL;
}

static void wake_process(sim_net *n, int i, int64_t at)
{
    if (i != NOBODY && n->process[i].sleeps)
        add_event(n, at,
                  (sim_event){.kind = SIM_WAKE,
                              .process = i,
                              .sleep = n->process[i].sleep});
}

static int count_ready(struct pollfd *fds, nfds_t n)
{
    int count = 0;
    for (nfds_t i = 0; i < n; i++) {
        fds[i].revents =
            fds[i].fd < 0
                ? 0
                : ready_events(&the_net->sock.at[fds[i].fd - FIRST_FD],
                               fds[i].events);
        count += fds[i].revents != 0;
    }
    return count;
}

/* Sleep until a descriptor is ready or the deadline has come. */
static int sleep_process(sim_process *p, struct pollfd *fds, nfds_t n,
                         int64_t deadline)
{
    sim_net *net = p->net;
    for (;;) {
        const int ready = p->killed ? 0 : count_ready(fds, n);
        if (ready || p->killed || net->clock.ns >= deadline)
            return ready;
        p->fds = fds;
        p->n = n;
        p->deadline = deadline;
        p->sleeps = true;
        p->sleep++;
        wake_process(net, p->index, deadline);
        give_turn_back(p);
    }
}

void sim_net_sleep(sim_net *n, int64_t ns)
{
    sleep_process(&n->process[current], NULL, 0, n->clock.ns + ns);
}

bool sim_net_killed(const sim_net *n, int i)
{
    return n->process[i].killed;
}

bool sim_net_ended(const sim_net *n, int i)
{
    return n->process[i].killed || n->process[i].done;
}

int sim_net_left_open(const sim_net *n, int i)
{
    return n->process[i].open;
}

int sim_net_listener(const sim_net *n, int i)
{
    return FIRST_FD + n->process[i].listener;
}

const char *sim_net_endpoint(const sim_net *n, int i)
{
    return n->process[i].endpoint;
}

/* --- the calls of the linker ---------------------------------------------- */

/* A process makes a system call. NULL: it is not a simulated one. */
static sim_process *caller(void)
{
    if (current == NOBODY)
        return NULL;
    the_net->clock.ns += CALL_TIME;
    return &the_net->process[current];
}

static sim_sock *sock_of(int fd)
{
    return &the_net->sock.at[fd - FIRST_FD];
}

static int fail_call(int error)
{
    errno = error;
    return -1;
}

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    sim_process *p = caller();
    if (!p)
        return __real_poll(fds, n, ms);
    return sleep_process(p, fds, n,
                         ms < 0 ? NO_DEADLINE : the_net->clock.ns + ms * FL_MS);
}

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    sim_process *p = caller();
    if (!p)
        return __real_socket(family, type, protocol);
    return FIRST_FD +
           new_sock(the_net, (sim_sock){.owner = p->index, .peer = NOBODY});
}

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    sim_process *p = caller();
    if (!p)
        return __real_connect(fd, to, size);
    const int port = ntohs(((const struct sockaddr_in *)to)->sin_port);
    sock_of(fd)->state = SOCK_CONNECTING;
    if (p->killed)
        return fail_call(EINPROGRESS);
    add_event(the_net, the_net->clock.ns + draw_delay(the_net),
              (sim_event){.kind = SIM_REACH,
                          .process = port - FIRST_PORT,
                          .from = p->index,
                          .sock = fd - FIRST_FD});
    return fail_call(EINPROGRESS);
}

int __real_getsockopt(int fd, int level, int name, void *value,
                      socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value,
                      socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (!caller())
        return __real_getsockopt(fd, level, name, value, size);
    *(int *)value = sock_of(fd)->error;
    return 0;
}

int __real_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    sim_process *p = caller();
    if (!p)
        return __real_accept4(fd, from, size, flags);
    sim_sock *s = sock_of(fd);
    if (p->killed || !s->backlog.n)
        return fail_call(EAGAIN);
    const int sock = s->backlog.at[0];
    fl_remove(&s->backlog, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)(40000 + sock))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (from) {
        memcpy(from, &a, sizeof a);
        *size = sizeof a;
    }
    return FIRST_FD + sock;
}

/* As many bytes as fit go on their way, in pieces. */
static ssize_t send_bytes(sim_process *p, int fd, const char *bytes, size_t n)
{
    sim_net *net = the_net;
    sim_sock *s = sock_of(fd);
    if (p->killed)
        return (ssize_t)n;
    if (s->ended)
        return fail_call(s->error ? s->error : EPIPE);
    sim_sock *peer = &net->sock.at[s->peer];
    const size_t room =
        peer->unread < net->opts.window ? net->opts.window - peer->unread : 0;
    const size_t size = n < room ? n : room;
    if (!size && n)
        return fail_call(EAGAIN);
    for (size_t at = 0; at < size;) {
        size_t piece = 1 + sim_net_dice(net, PIECE);
        piece = piece < size - at ? piece : size - at;
        sim_event e = {.kind = SIM_ARRIVE,
                       .process = peer->owner,
                       .from = p->index,
                       .sock = s->peer,
                       .bytes = fl_mem_alloc(piece),
                       .size = piece};
        memcpy(e.bytes, bytes + at, piece);
        add_event(net, arrival_at(net, peer), e);
        at += piece;
    }
    peer->unread += size;
    return (ssize_t)size;
}

static ssize_t receive_bytes(sim_process *p, int fd, char *bytes, size_t n)
{
    sim_sock *s = sock_of(fd);
    const size_t there = (size_t)(s->in.n - s->in_at);
    const size_t size = n < there ? n : there;
    if (p->killed || (!there && !s->ended))
        return fail_call(EAGAIN);
    if (!there)
        return s->error ? fail_call(s->error) : 0;
    memcpy(bytes, s->in.at + s->in_at, size);
    s->in_at += (int64_t)size;
    s->unread -= size;
    if (s->peer >= 0) /* there may be room again */
        wake_process(the_net, the_net->sock.at[s->peer].owner,
                     the_net->clock.ns + draw_delay(the_net));
    return (ssize_t)size;
}

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    sim_process *p = caller();
    return p ? send_bytes(p, fd, bytes, n) : __real_send(fd, bytes, n, flags);
}

ssize_t __real_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
    sim_process *p = caller();
    return p ? receive_bytes(p, fd, bytes, n)
             : __real_recv(fd, bytes, n, flags);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    sim_process *p = caller();
    ssize_t all = 0;
    if (!p)
        return __real_sendmsg(fd, msg, flags);
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        const struct iovec *v = &msg->msg_iov[i];
        const ssize_t n =
            v->iov_len ? send_bytes(p, fd, v->iov_base, v->iov_len) : 0;
        if (n < 0)
            return all ? all : n;
        all += n;
        if ((size_t)n < v->iov_len)
            break;
    }
    return all;
}

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
    sim_process *p = caller();
    ssize_t all = 0;
    if (!p)
        return __real_recvmsg(fd, msg, flags);
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        const struct iovec *v = &msg->msg_iov[i];
        if (!v->iov_len)
            continue;
        const ssize_t n = receive_bytes(p, fd, v->iov_base, v->iov_len);
        if (n <= 0)
            return all ? all : n;
        all += n;
        if ((size_t)n < v->iov_len)
            break;
    }
    return all;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (!caller() || fd < FIRST_FD)
        return __real_close(fd);
    close_sock(the_net, fd - FIRST_FD);
    return 0;
}

const fl_clock *__real_fl_clock_real(void);
const fl_clock *__wrap_fl_clock_real(void);
const fl_clock *__wrap_fl_clock_real(void)
{
    return caller() ? &the_net->clock.clock : __real_fl_clock_real();
}

fl_entropy __real_fl_entropy_real(void);
fl_entropy __wrap_fl_entropy_real(void);
fl_entropy __wrap_fl_entropy_real(void)
{
    return caller() ? fl_entropy_fake(sim_net_dice(the_net, UINT64_MAX))
                    : __real_fl_entropy_real();
}

int __real_fl_cores(void);
int __wrap_fl_cores(void);
int __wrap_fl_cores(void)
{
    return caller() ? the_net->opts.cores : __real_fl_cores();
}

/* --- what happens --------------------------------------------------------- */

static void answer_attempt(sim_net *n, const sim_event *e, int peer, int error)
{
    add_event(n, arrival_at(n, &n->sock.at[e->sock]),
              (sim_event){.kind = SIM_ANSWER,
                          .process = e->from,
                          .from = e->process,
                          .sock = e->sock,
                          .error = error,
                          .peer = peer});
}

/* The listener's kernel makes the connection; its owner accepts it later. */
static void reach_listener(sim_net *n, const sim_event *e)
{
    const sim_process *p = &n->process[e->process];
    if (!is_up(p) || n->sock.at[p->listener].state != SOCK_LISTENING) {
        answer_attempt(n, e, 0, ECONNREFUSED);
        return;
    }
    const int mine = new_sock(
        n,
        (sim_sock){.state = SOCK_OPEN, .owner = e->process, .peer = e->sock});
    fl_push(&n->sock.at[p->listener].backlog, mine);
    answer_attempt(n, e, mine, 0);
    wake_process(n, e->process, n->clock.ns);
}

static void answer_client(sim_net *n, const sim_event *e)
{
    sim_sock *s = &n->sock.at[e->sock];
    if (s->state == SOCK_CLOSED) { /* it gave up */
        if (!e->error && n->sock.at[e->peer].state == SOCK_OPEN)
            add_event(n, n->clock.ns + draw_delay(n),
                      (sim_event){.kind = SIM_END,
                                  .process = e->from,
                                  .from = e->process,
                                  .sock = e->peer});
        return;
    }
    s->error = e->error;
    s->state = e->error ? SOCK_NEW : SOCK_OPEN;
    s->peer = e->error ? NOBODY : e->peer;
    wake_process(n, e->process, n->clock.ns);
}

static void arrive_bytes(sim_net *n, const sim_event *e)
{
    sim_sock *s = &n->sock.at[e->sock];
    if (s->state != SOCK_OPEN || s->ended)
        return;
    const int64_t size = s->in.n + (int64_t)e->size;
    fl_vec_reserve((void **)&s->in.at, &s->in.cap, size, 1);
    memcpy(s->in.at + s->in.n, e->bytes, e->size);
    s->in.n = size;
    wake_process(n, s->owner, n->clock.ns);
}

static void arrive_end(sim_net *n, const sim_event *e)
{
    sim_sock *s = &n->sock.at[e->sock];
    if (s->state != SOCK_OPEN || s->ended)
        return;
    s->ended = true;
    s->error = e->error;
    if (e->error == ECONNRESET) /* what was not read is lost */
        s->in_at = s->in.n;
    wake_process(n, s->owner, n->clock.ns);
}

static void end_at_once(sim_net *n, int sock, int error)
{
    arrive_end(n, &(sim_event){.sock = sock, .error = error});
}

/* Both ends of all connections of a process that is still cut off. */
static void fall_silent(sim_net *n, int i)
{
    if (n->process[i].isolated_until <= n->clock.ns)
        return;
    for (int k = 0; k < n->sock.n; k++)
        if (n->sock.at[k].state == SOCK_OPEN && n->sock.at[k].peer >= 0 &&
            (n->sock.at[k].owner == i ||
             n->sock.at[n->sock.at[k].peer].owner == i))
            end_at_once(n, k, ETIMEDOUT);
}

static void start_process(sim_net *n, int i)
{
    sim_process *p = &n->process[i];
    p->started = true;
    p->listener = new_sock(n, (sim_sock){.state = SOCK_LISTENING,
                                         .owner = i,
                                         .peer = NOBODY,
                                         .port = FIRST_PORT + i});
    run_turn(p);
}

static void wake_sleeper(sim_net *n, const sim_event *e)
{
    sim_process *p = &n->process[e->process];
    if (!p->sleeps || p->sleep != e->sleep)
        return;
    if (!p->killed && p->stopped_until > n->clock.ns)
        add_event(n, p->stopped_until, *e);
    else if (p->killed || n->clock.ns >= p->deadline ||
             count_ready(p->fds, p->n))
        run_turn(p);
}

/* A cut host: what is on its way waits until the network heals, or is lost. */
static bool is_held_up(sim_net *n, const sim_event *e)
{
    const bool travels = e->kind >= SIM_REACH && e->kind <= SIM_END;
    if (!travels || e->process == NOBODY || e->from == NOBODY)
        return false;
    const int64_t a = n->process[e->process].isolated_until;
    const int64_t b = n->process[e->from].isolated_until;
    const int64_t until = a > b ? a : b;
    if (until <= n->clock.ns)
        return false;
    if (until != NO_DEADLINE)
        add_event(n, until, *e);
    else
        fl_mem_free(e->bytes);
    return true;
}

static void run_event(sim_net *n, const sim_event *e)
{
    switch (e->kind) {
    case SIM_START:
        if (!n->process[e->process].killed)
            start_process(n, e->process);
        break;
    case SIM_WAKE:
        wake_sleeper(n, e);
        break;
    case SIM_REACH:
        reach_listener(n, e);
        break;
    case SIM_ANSWER:
        answer_client(n, e);
        break;
    case SIM_ARRIVE:
        arrive_bytes(n, e);
        break;
    case SIM_END:
        arrive_end(n, e);
        break;
    case SIM_SILENCE:
        fall_silent(n, e->process);
        break;
    case SIM_FAULT:
        e->fault(e->user);
        break;
    }
    fl_mem_free(e->bytes);
}

/* --- faults --------------------------------------------------------------- */

void sim_net_kill(sim_net *n, int i)
{
    sim_process *p = &n->process[i];
    if (p->killed || p->done)
        return;
    close_all(n, i);
    p->killed = true;
    wake_process(n, i, n->clock.ns);
    if (!p->started) /* it has no thread to unwind */
        p->done = true;
}

void sim_net_stop(sim_net *n, int i, int64_t until)
{
    n->process[i].stopped_until = until;
}

int sim_net_cut(sim_net *n, int i)
{
    FL_VEC(int) found = {0};
    int other = NOBODY;
    for (int k = 0; k < n->sock.n; k++)
        if (n->sock.at[k].state == SOCK_OPEN && n->sock.at[k].owner == i &&
            n->sock.at[k].peer >= 0 && !n->sock.at[k].ended)
            fl_push(&found, k);
    if (found.n) {
        const int k = found.at[sim_net_dice(n, (uint64_t)found.n)];
        const int peer = n->sock.at[k].peer;
        other = n->sock.at[peer].owner;
        end_at_once(n, k, ECONNRESET);
        end_at_once(n, peer, ECONNRESET);
    }
    fl_vec_fini(&found);
    return other;
}

void sim_net_isolate(sim_net *n, int i, int64_t until)
{
    n->process[i].isolated_until = until;
    add_event(n, n->clock.ns + SILENCE,
              (sim_event){.kind = SIM_SILENCE, .process = i});
}

void sim_net_stranger(sim_net *n, int i, size_t size)
{
    const sim_process *p = &n->process[i];
    if (!is_up(p) || n->sock.at[p->listener].state != SOCK_LISTENING)
        return;
    const int theirs = new_sock(
        n, (sim_sock){.state = SOCK_OPEN, .owner = NOBODY, .peer = NOBODY});
    const int mine =
        new_sock(n, (sim_sock){.state = SOCK_OPEN, .owner = i, .peer = theirs});
    n->sock.at[theirs].peer = mine;
    sim_sock *s = &n->sock.at[mine];
    for (size_t k = 0; k < size; k++)
        fl_push(&s->in, (char)sim_net_dice(n, 256));
    s->unread = size;
    fl_push(&n->sock.at[p->listener].backlog, mine);
    wake_process(n, i, n->clock.ns);
}

/* --- a run ---------------------------------------------------------------- */

sim_net *sim_net_new(const sim_net_opts *opts)
{
    sim_net *n = fl_mem_alloc(sizeof *n);
    n->opts = *opts;
    n->dice = fl_entropy_fake(opts->seed);
    n->trace = 14695981039346656037u;
    fl_fake_clock_init(&n->clock, FL_SEC);
    sem_init(&n->back, 0, 0);
    for (int i = 0; i < opts->processes; i++) {
        sim_process *p = &n->process[i];
        p->net = n;
        p->index = i;
        sem_init(&p->go, 0, 0);
        snprintf(p->endpoint, sizeof p->endpoint, "127.0.0.1:%d",
                 FIRST_PORT + i);
    }
    the_net = n;
    return n;
}

void sim_net_start(sim_net *n, int i, int64_t at,
                   void (*run)(void *user, int i), void *user)
{
    n->process[i].run = run;
    n->process[i].user = user;
    add_event(n, at, (sim_event){.kind = SIM_START, .process = i});
}

void sim_net_at(sim_net *n, int64_t at, void (*fault)(void *user), void *user)
{
    add_event(n, at,
              (sim_event){.kind = SIM_FAULT, .fault = fault, .user = user});
}

static bool all_done(const sim_net *n)
{
    for (int i = 0; i < n->opts.processes; i++)
        if (!n->process[i].done)
            return false;
    return true;
}

static void run_until(sim_net *n, int64_t limit)
{
    while (!all_done(n) && n->heap.n && n->heap.at[0].at < limit) {
        const sim_event e = take_event(n);
        if (e.at > n->clock.ns)
            n->clock.ns = e.at;
        if (is_held_up(n, &e))
            continue;
        n->events++;
        mix_trace(n, (uint64_t)n->clock.ns);
        mix_trace(n, (uint64_t)e.kind * 1000003 + (uint64_t)e.process);
        mix_trace(n, e.size);
        run_event(n, &e);
    }
}

bool sim_net_run(sim_net *n)
{
    for (int i = 0; i < n->opts.processes; i++)
        pthread_create(&n->process[i].thread, NULL, run_process,
                       &n->process[i]);
    run_until(n, n->opts.limit);
    const bool ended = all_done(n);
    for (int i = 0; i < n->opts.processes; i++) /* what hangs is unwound */
        sim_net_kill(n, i);
    run_until(n, NO_DEADLINE);
    for (int i = 0; i < n->opts.processes; i++) {
        sim_process *p = &n->process[i];
        if (!p->started)
            sem_post(&p->go);
        pthread_join(p->thread, NULL);
    }
    return ended;
}

void sim_net_free(sim_net *n)
{
    for (int64_t i = 0; i < n->sock.n; i++) {
        fl_vec_fini(&n->sock.at[i].in);
        fl_vec_fini(&n->sock.at[i].backlog);
    }
    for (int64_t i = 0; i < n->heap.n; i++)
        fl_mem_free(n->heap.at[i].bytes);
    for (int i = 0; i < n->opts.processes; i++)
        sem_destroy(&n->process[i].go);
    sem_destroy(&n->back);
    fl_vec_fini(&n->heap);
    fl_vec_fini(&n->sock);
    fl_mem_free(n);
    the_net = NULL;
}
