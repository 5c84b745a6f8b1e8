/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc_acceptor.h"

#include "net/test_tls.h"

#include <grpc/grpc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

typedef struct scene {
    fl_ca *ca;
    fl_tls *tls;
    grpc_completion_queue *queue;
    grpc_server *server;
    fl_grpc_acceptor *a;
} scene;

static void set_up(scene *t)
{
    grpc_init();
    CHECK_OK(fl_ca_new(&t->ca));
    t->tls = make_tls(t->ca, NULL, 1);
    t->queue = grpc_completion_queue_create_for_next(NULL);
    CHECK_OK(fl_grpc_acceptor_new(&(grpc_channel_args){0}, t->tls, &t->server,
                                  &t->a));
    grpc_server_register_completion_queue(t->server, t->queue, NULL);
    grpc_server_start(t->server);
}

static void await_queue(scene *t, grpc_completion_type type)
{
    const gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
    while (grpc_completion_queue_next(t->queue, never, NULL).type != type)
        continue;
}

static void tear_down(scene *t)
{
    grpc_server_shutdown_and_notify(t->server, t->queue, t);
    await_queue(t, GRPC_OP_COMPLETE);
    grpc_server_destroy(t->server);
    grpc_completion_queue_shutdown(t->queue);
    await_queue(t, GRPC_QUEUE_SHUTDOWN);
    grpc_completion_queue_destroy(t->queue);
    fl_grpc_acceptor_free(t->a);
    fl_tls_free(t->tls);
    fl_ca_free(t->ca);
    grpc_shutdown();
}

/* A connection over loopback: the accepted end, and the port of the other one,
 * which is *client. */
static int accept_one(int family, int *client, int *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *at = family == AF_INET6 ? (void *)&six : (void *)&four;
    socklen_t size = family == AF_INET6 ? sizeof six : sizeof four;
    const int l = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l < 0)
        fl_test_skip("there is no such family of addresses here");
    *client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(!bind(l, at, size) && !listen(l, 1) && !getsockname(l, at, &size));
    CHECK_INT(connect(*client, at, size), 0);
    CHECK_INT(getsockname(*client, at, &size), 0);
    *port = ntohs(four.sin_port ? four.sin_port : six.sin6_port);
    const int fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(fd >= 0);
    close(l);
    return fd;
}

/* What gRPC calls a peer; `form` has a place for the port. */
static int find(scene *t, const char *form, int port)
{
    char text[100];
    snprintf(text, sizeof text, form, port);
    return fl_grpc_acceptor_find(t->a, text);
}

static void finds_sockets_by_their_peers(void)
{
    scene t;
    int client[3], fd[3], port[3];
    set_up(&t);
    for (int i = 0; i < 3; i++) {
        fd[i] = accept_one(i < 2 ? AF_INET : AF_INET6, &client[i], &port[i]);
        fl_grpc_acceptor_take(t.a, fd[i]);
    }
    CHECK_INT(find(&t, "ipv4:127.0.0.1:%d", port[0]), fd[0]);
    CHECK_INT(find(&t, "ipv4:127.0.0.1:%d", port[1]), fd[1]);
    CHECK_INT(find(&t, "ipv6:%%5B::1%%5D:%d", port[2]), fd[2]);
    CHECK_INT(find(&t, "ipv6:%%5B::1%%252%%5D:%d", port[2]), fd[2]);
    CHECK_INT(find(&t, "ipv6:%%5B::ffff:127.0.0.1%%5D:%d", port[0]), fd[0]);
    CHECK_INT(find(&t, "ipv4:127.0.0.2:%d", port[0]), -1);
    CHECK_INT(find(&t, "ipv6:%%5B::2%%5D:%d", port[2]), -1);
    tear_down(&t);
    for (int i = 0; i < 3; i++)
        close(client[i]);
}

static void finds_nothing_for_other_names(void)
{
    static const char *const names[] = {
        "",
        "ipv4:",
        "ipv6:",
        "ipv4:127.0.0.1",
        "ipv4::",
        "ipv4:127.0.0.1:-1",
        "ipv6:%5B::1%5D",
        "ipv6:%5B%5D:0",
        "unix:/tmp/x",
        "fd:3",
        "ipv4:0.0.0.0:0",
        "ipv6:%5B1111111111111111111111111111111111111111111111111111%5D:1"};
    scene t;
    set_up(&t);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_INT(fl_grpc_acceptor_find(t.a, names[i]), -1);
    tear_down(&t);
}

const fl_test fl_tests[] = {
    {"an acceptor finds sockets by their peers", finds_sockets_by_their_peers},
    {"an acceptor finds nothing for other names",
     finds_nothing_for_other_names},
    {0},
};
