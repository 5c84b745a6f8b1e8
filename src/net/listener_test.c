/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends are in this process. Sockets that the listener gives to `take` are
 * kept here, as gRPC would keep them. */
#include "net/listener.h"

#include "base/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MOST = 256,
    PATIENCE = 300, /* seconds until a missing event fails the test */
};

/* Thread: lock. */
typedef struct scene {
    fl_listener *l;
    int port;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int n, fd[MOST]; /* sockets that `take` got */
    int settles;
} scene;

static void take(void *self, int fd)
{
    scene *s = self;
    pthread_mutex_lock(&s->lock);
    CHECK(s->n < MOST);
    s->fd[s->n++] = fd;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
}

static void set_up(scene *s, fl_listener_opts opts)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    opts.take = take;
    opts.self = s;
    CHECK_OK(fl_listener_new(&opts, "127.0.0.1:0", &s->port, &s->l));
    CHECK_OK(fl_listener_start(s->l));
}

static void tear_down(scene *s)
{
    fl_listener_free(s->l);
    for (int i = 0; i < s->n; i++)
        close(s->fd[i]);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->more);
}

/* Wait for the k-th socket that `take` got. */
static int taken(scene *s, int k)
{
    pthread_mutex_lock(&s->lock);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    while (s->n <= k && !pthread_cond_timedwait(&s->more, &s->lock, &end))
        ;
    CHECK(s->n > k);
    const int fd = s->fd[k];
    pthread_mutex_unlock(&s->lock);
    return fd;
}

static uint64_t taken_name(scene *s, int k)
{
    return fl_listener_name(s->l, taken(s, k));
}

static int client_new(void)
{
    const struct timeval patience = {PATIENCE, 0};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void client_connect(const scene *s, int fd)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)s->port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(!connect(fd, (struct sockaddr *)&a, sizeof a));
}

static int client(const scene *s)
{
    const int fd = client_new();
    client_connect(s, fd);
    return fd;
}

static void send_bytes(int fd, size_t n)
{
    static const char zeros[1 << 16];
    CHECK_INT(send(fd, zeros, n, MSG_NOSIGNAL), n);
}

/* Read bytes as gRPC would. */
static void read_bytes(int fd, size_t n)
{
    char buf[1 << 13];
    while (n) {
        const ssize_t got = recv(fd, buf, n < sizeof buf ? n : sizeof buf, 0);
        CHECK(got > 0 || (got < 0 && errno == EAGAIN));
        n -= got > 0 ? (size_t)got : 0;
    }
}

/* Check that the other side has closed or reset the connection. */
static void check_hung_up(int fd)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, 0);
    CHECK(n == 0 || (n < 0 && errno == ECONNRESET));
}

static void check_alive(int fd)
{
    char byte;
    CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static void connections_have_names(void)
{
    scene s;
    char text[80], want[80];
    struct sockaddr_in a;
    socklen_t size = sizeof a;
    set_up(&s, (fl_listener_opts){0});
    const int c = client(&s);
    const uint64_t name = taken_name(&s, 0);
    CHECK(!getsockname(c, (struct sockaddr *)&a, &size));
    snprintf(want, sizeof want, "127.0.0.1:%d", ntohs(a.sin_port));
    CHECK_STR(fl_listener_address(s.l, name, text, sizeof text), want);
    CHECK_INT(fl_listener_standing(s.l, name), FL_LOCAL);
    fl_listener_trust(s.l, name);
    CHECK_INT(fl_listener_standing(s.l, name), FL_MEMBER);
    CHECK_INT(fl_listener_name(s.l, -1), 0);
    CHECK_INT(fl_listener_name(s.l, 100000), 0);
    CHECK_INT(fl_listener_standing(s.l, 0), FL_STRANGER);
    CHECK_STR(fl_listener_address(s.l, 0, text, sizeof text), "?");
    close(c);
    tear_down(&s);
}

/* The second socket gets the descriptor of the first, which was closed. */
static void number_of_a_closed_member_lends_nothing(void)
{
    scene s;
    char text[80];
    set_up(&s, (fl_listener_opts){.stranger_calls = 1});
    const int a = client(&s), fd = taken(&s, 0);
    const uint64_t first = taken_name(&s, 0);
    CHECK(fl_listener_enter(s.l, first));
    fl_listener_trust(s.l, first);
    const int b = client_new(), spare = dup(b);
    CHECK(spare > fd);
    close(fd);
    client_connect(&s, b);
    CHECK_INT(taken(&s, 1), fd);
    const uint64_t second = taken_name(&s, 1);
    CHECK(second != first);
    CHECK_INT(fl_listener_standing(s.l, first), FL_STRANGER);
    CHECK_STR(fl_listener_address(s.l, first, text, sizeof text), "?");
    fl_listener_trust(s.l, first);
    CHECK_INT(fl_listener_standing(s.l, second), FL_LOCAL);
    CHECK(fl_listener_enter(s.l, second));
    fl_listener_leave(s.l, first);
    CHECK(!fl_listener_enter(s.l, second) && !fl_listener_enter(s.l, first));
    s.n = 1; /* so that the descriptor is closed once */
    close(a);
    close(b);
    close(spare);
    tear_down(&s);
}

/* Each of 128 strangers may send half as much as each of 64. */
static void strangers_share_what_they_may_send(void)
{
    enum {
        N = 128,
        SHARE = (64 << 20) / N
    };
    scene s;
    int c[N];
    set_up(&s, (fl_listener_opts){.strangers = N});
    for (int i = 0; i < N; i++)
        c[i] = client(&s);
    taken(&s, N - 1);
    for (int sent = 0; sent < SHARE; sent += 1 << 16) {
        send_bytes(c[0], 1 << 16);
        read_bytes(taken(&s, 0), 1 << 16);
    }
    check_alive(c[0]);
    send_bytes(c[0], 1);
    read_bytes(taken(&s, 0), 1);
    check_hung_up(c[0]);
    check_alive(c[1]);
    for (int i = 0; i < N; i++)
        close(c[i]);
    tear_down(&s);
}

static void stranger_that_sends_too_much_is_hung_up_on(void)
{
    scene s;
    set_up(&s, (fl_listener_opts){.stranger_bytes = 1000});
    const int member = client(&s);
    fl_listener_trust(s.l, taken_name(&s, 0));
    send_bytes(member, 5000);
    read_bytes(taken(&s, 0), 5000);
    const int small = client(&s);
    CHECK(fl_listener_enter(s.l, taken_name(&s, 1)));
    send_bytes(small, 5000); /* not read: they stay in the kernel */
    read_bytes(taken(&s, 1), 1000);
    const int large = client(&s);
    CHECK(fl_listener_enter(s.l, taken_name(&s, 2)));
    send_bytes(large, 1001);
    read_bytes(taken(&s, 2), 1001);
    check_hung_up(large); /* so all connections were checked */
    check_alive(member);
    check_alive(small);
    close(large);
    close(small);
    close(member);
    tear_down(&s);
}

static void settle(void *self)
{
    scene *s = self;
    pthread_mutex_lock(&s->lock);
    s->settles++;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
}

static void await_settle(scene *s, int n)
{
    pthread_mutex_lock(&s->lock);
    while (s->settles < n)
        pthread_cond_wait(&s->more, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* A member counts as a stranger until the network has reported its call. */
static void nobody_is_hung_up_on_before_the_network_settles(void)
{
    scene s;
    set_up(&s, (fl_listener_opts){.stranger_bytes = 1000, .settle = settle});
    const int member = client(&s);
    send_bytes(member, 8001);
    read_bytes(taken(&s, 0), 8001);
    await_settle(&s, 1);
    fl_listener_trust(s.l, taken_name(&s, 0));
    fl_listener_settled(s.l);
    const int stranger = client(&s);
    send_bytes(stranger, 8001);
    read_bytes(taken(&s, 1), 8001);
    for (int k = 2; k < 4; k++) {
        await_settle(&s, k);
        check_alive(stranger);
        fl_listener_settled(s.l);
    }
    check_hung_up(stranger);
    check_alive(member);
    close(stranger);
    close(member);
    tear_down(&s);
}

/* A member counts as a stranger until gRPC has reported its first call. */
static void connection_may_send_more_before_its_first_call(void)
{
    enum {
        EARLY = 8 * 1000
    };
    scene s;
    set_up(&s, (fl_listener_opts){.stranger_bytes = 1000});
    const int member = client(&s), other = client(&s);
    send_bytes(member, EARLY);
    read_bytes(taken(&s, 0), EARLY);
    send_bytes(other, EARLY);
    read_bytes(taken(&s, 1), EARLY);
    const int flood = client(&s);
    send_bytes(flood, EARLY + 1);
    read_bytes(taken(&s, 2), EARLY + 1);
    check_hung_up(flood); /* so all connections were checked */
    check_alive(member);
    check_alive(other);
    fl_listener_trust(s.l, taken_name(&s, 0)); /* its call shows the token */
    CHECK(fl_listener_enter(s.l, taken_name(&s, 0)));
    CHECK(fl_listener_enter(s.l, taken_name(&s, 1)));
    check_hung_up(other);
    check_alive(member);
    close(flood);
    close(other);
    close(member);
    tear_down(&s);
}

static void stranger_that_says_nothing_is_hung_up_on(void)
{
    scene s;
    set_up(&s, (fl_listener_opts){.stranger_time = 1});
    const int c = client(&s);
    check_hung_up(c);
    close(c);
    tear_down(&s);
}

/* Connections of members do not count. */
static void oldest_stranger_of_a_host_makes_room(void)
{
    scene s;
    int c[5];
    set_up(&s, (fl_listener_opts){.strangers = 2});
    for (int i = 0; i < 5; i++) {
        c[i] = client(&s);
        const uint64_t name = taken_name(&s, i);
        if (i == 1)
            fl_listener_trust(s.l, name);
    }
    check_hung_up(c[0]);
    check_hung_up(c[2]);
    check_alive(c[1]);
    check_alive(c[3]);
    check_alive(c[4]);
    for (int i = 0; i < 5; i++)
        close(c[i]);
    tear_down(&s);
}

static void calls_of_a_stranger_are_counted(void)
{
    scene s;
    set_up(&s, (fl_listener_opts){.stranger_calls = 2});
    const int c = client(&s);
    const uint64_t name = taken_name(&s, 0);
    CHECK(fl_listener_enter(s.l, name) && fl_listener_enter(s.l, name));
    CHECK(!fl_listener_enter(s.l, name));
    fl_listener_leave(s.l, name);
    CHECK(fl_listener_enter(s.l, name) && !fl_listener_enter(s.l, name));
    fl_listener_trust(s.l, name);
    CHECK(fl_listener_enter(s.l, name) && fl_listener_enter(s.l, name));
    CHECK(!fl_listener_enter(s.l, 0));
    close(c);
    tear_down(&s);
}

/* The lowest free descriptor. */
static int next_number(void)
{
    const int fd = dup(0);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

static void server_without_files_takes_connections_again(void)
{
    scene s;
    int c[8];
    struct rlimit old, few;
    set_up(&s, (fl_listener_opts){.open = true});
    for (int i = 0; i < 8; i++)
        c[i] = client_new();
    CHECK(!getrlimit(RLIMIT_NOFILE, &old));
    few = old;
    few.rlim_cur = (rlim_t)next_number() + 2;
    CHECK(!setrlimit(RLIMIT_NOFILE, &few));
    for (int i = 0; i < 8; i++)
        client_connect(&s, c[i]);
    for (int i = 2; i < 8; i++)
        check_hung_up(c[i]);
    check_alive(c[0]);
    check_alive(c[1]);
    close(taken(&s, 0));
    close(taken(&s, 1));
    for (int i = 0; i < 8; i++)
        close(c[i]);
    /* accept fails for want of a file even if nobody waits, so the listener may
     * be about to turn one more connection away. */
    c[0] = client(&s);
    c[1] = client(&s);
    taken(&s, 2);
    s.fd[0] = s.fd[1] = -1;
    CHECK(!setrlimit(RLIMIT_NOFILE, &old));
    CHECK_OK(fl_listener_check(s.l));
    close(c[0]);
    close(c[1]);
    tear_down(&s);
}

static int find_listening(int port)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in a;
        int listens = 0;
        socklen_t size = sizeof listens, length = sizeof a;
        if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) &&
            listens && !getsockname(fd, (struct sockaddr *)&a, &length) &&
            ntohs(a.sin_port) == port)
            return fd;
    }
    return -1;
}

static void lost_listening_socket_is_told(void)
{
    scene s;
    fl_err err = FL_OK;
    set_up(&s, (fl_listener_opts){0});
    CHECK_OK(fl_listener_check(s.l));
    CHECK(!shutdown(find_listening(s.port), SHUT_RDWR));
    for (int i = 0; !err && i < PATIENCE * 1000; i++) {
        usleep(1000);
        err = fl_listener_check(s.l);
    }
    CHECK_ERR(err, FL_EIO, "lost its listening socket (Invalid argument)");
    tear_down(&s);
}

const fl_test fl_tests[] = {
    {"connections have names", connections_have_names},
    {"the number of a closed member's socket lends a stranger nothing",
     number_of_a_closed_member_lends_nothing},
    {"strangers share what they may send", strangers_share_what_they_may_send},
    {"a stranger that sends too much is hung up on",
     stranger_that_sends_too_much_is_hung_up_on},
    {"a connection may send more before its first call",
     connection_may_send_more_before_its_first_call},
    {"nobody is hung up on before the network settles",
     nobody_is_hung_up_on_before_the_network_settles},
    {"a stranger that says nothing is hung up on",
     stranger_that_says_nothing_is_hung_up_on},
    {"the oldest stranger of a host makes room",
     oldest_stranger_of_a_host_makes_room},
    {"calls of a stranger are counted", calls_of_a_stranger_are_counted},
    {"a server without files takes connections again",
     server_without_files_takes_connections_again},
    {"a lost listening socket is told", lost_listening_socket_is_told},
    {0},
};
