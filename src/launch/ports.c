/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - the ports of servers or ranks.
 *
 * A port that is free now may be taken when the server wants to bind it. So the
 * launcher binds the port itself, without listening, as long as the job runs:
 * no other process can take it, and a server that knows of this binds it, too.
 *
 *     while binding   SO_REUSEADDR: connections of an earlier job may linger
 *     from then on    SO_REUSEPORT instead: for our server, not for another
 *                     launcher, which binds without it */
#include "launch/launch.h"

#include "base/clock.h"
#include "base/endpoint.h"
#include "net/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ENDING (3 * FL_SEC) /* time for processes of an earlier job */
#define PAUSE  (50 * FL_MS) /* between two tries */

enum {
    FIRST_PORT = 6170,
    LAST_PORT = 7169
};

const char *fl_launch_own_address(char out[FL_LAUNCH_ADDRESS])
{
    struct ifaddrs *all;
    snprintf(out, FL_LAUNCH_ADDRESS, "127.0.0.1");
    if (getifaddrs(&all))
        return out;
    for (struct ifaddrs *at = all; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET ||
            !(at->ifa_flags & IFF_UP) || at->ifa_flags & IFF_LOOPBACK)
            continue;
        inet_ntop(AF_INET,
                  &((const struct sockaddr_in *)(void *)at->ifa_addr)->sin_addr,
                  out, FL_LAUNCH_ADDRESS);
        break;
    }
    freeifaddrs(all);
    return out;
}

/* A socket that holds host:port. Returns -1 on failure with the reason in
 * errno; errno 0 means that there is no such host. */
static int hold(const char *host, int port)
{
    char service[16];
    const int on = 1, off = 0;
    int fd = -1;
    const struct addrinfo like = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    snprintf(service, sizeof service, "%d", port);
    errno = 0;
    if (getaddrinfo(host, service, &like, &found))
        return -1;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
         bind(fd, found->ai_addr, found->ai_addrlen) ||
         setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off) ||
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on))) {
        const int why = errno;
        close(fd);
        errno = why;
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* As hold, for a port that the user named. If the launcher of an earlier job
 * was killed, its servers may still be about to end. */
static int hold_named(const char *host, int port)
{
    const fl_clock *clock = fl_clock_real();
    const int64_t until = fl_clock_now(clock) + ENDING;
    int fd = hold(host, port);
    for (bool told = false;
         fd < 0 && errno == EADDRINUSE && fl_clock_now(clock) < until &&
         !fl_launch_is_asked();
         told = true) {
        if (!told)
            fprintf(stderr,
                    "launch: port %d on %s is taken; waiting up to %d s for "
                    "it\n",
                    port, host, (int)(ENDING / FL_SEC));
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
        fd = hold(host, port);
    }
    return fd;
}

static const char *endpoint_of(fl_launch *l, const char *host, int port)
{
    return fl_arena_printf(l->arena, strchr(host, ':') ? "[%s]:%d" : "%s:%d",
                           host, port);
}

/* The error for a port that could not be held. */
static fl_err cannot_hold(fl_launch *l, const char *host, int port)
{
    if (!errno)
        return fl_fail(FL_EINVAL, "launch: there is no host \"%s\"", host);
    if (errno == EADDRNOTAVAIL)
        return fl_fail(FL_EINVAL,
                       "launch: %s is not this host; if the job has several "
                       "hosts, name all of them with --cluster_node_ips and "
                       "this one with --node_ip",
                       host);
    if (errno == EMFILE)
        return fl_fail(FL_EIO,
                       "launch: this process may open no more files, and each "
                       "server needs one: raise ulimit -n, or start fewer "
                       "servers (--server_num)");
    const fl_err err = fl_port_why(endpoint_of(l, host, port));
    const fl_sentence why = fl_sentence_keep();
    return fl_fail(err,
                   "launch: %s; choose others with --start_port or --endpoints",
                   why.text);
}

static void add_port(fl_launch *l, const char *host, int port, int fd)
{
    if (fd >= 0)
        fl_push(&l->held, ((fl_held_port){fd, (int)l->endpoints.n}));
    fl_push(&l->endpoints, endpoint_of(l, host, port));
}

/* The number of servers or ranks on each host. */
static int count_here(const fl_launch *l)
{
    return l->opts->collective ? l->opts->trainers : l->opts->servers;
}

/* Add an endpoint that the user named. Its port is held if it is on this host.
 */
static fl_err take_port(fl_launch *l, const char *host, int port)
{
    int fd = -1;
    const char *endpoint = endpoint_of(l, host, port);
    FL_TRY(fl_endpoint_check(endpoint, "launch: server "));
    for (int64_t i = 0; i < l->endpoints.n; i++)
        if (!strcmp(l->endpoints.at[i], endpoint))
            return fl_fail(FL_EINVAL, "launch: endpoint %s is named twice",
                           endpoint);
    if (l->nodes == 1 || !strcmp(host, l->opts->node_ip)) {
        fd = hold_named(host, port);
        if (fd < 0 && fl_launch_is_asked())
            return fl_fail(FL_EINTR,
                           "launch: interrupted while it waited for port %d on "
                           "%s; nothing was started",
                           port, host);
        if (fd < 0)
            return cannot_hold(l, host, port);
    }
    add_port(l, host, port, fd);
    return FL_OK;
}

static fl_err take_endpoints(fl_launch *l, const char *endpoints)
{
    char *rest = fl_arena_strdup(l->arena, endpoints);
    fl_endpoint e;
    for (char *at; (at = strtok_r(rest, ", ", &rest));) {
        FL_TRY(fl_endpoint_read(at, "launch: server ", &e));
        FL_TRY(take_port(
            l, fl_arena_printf(l->arena, "%.*s", e.host_size, e.host), e.port));
    }
    if (!l->endpoints.n)
        return fl_fail(FL_EINVAL,
                       "launch: --endpoints \"%s\" names no endpoint",
                       endpoints);
    return FL_OK;
}

/* Use the same ports on every host, so that launchers agree without talking. */
static fl_err take_hosts(fl_launch *l, const char *hosts, int from)
{
    char *rest = fl_arena_strdup(l->arena, hosts);
    for (char *host; (host = strtok_r(rest, ", ", &rest));)
        for (int i = 0; i < count_here(l); i++)
            FL_TRY(take_port(l, host, from + i));
    return FL_OK;
}

/* Find free ports on this host. */
static fl_err find_ports(fl_launch *l)
{
    const char *host = l->opts->node_ip;
    for (int port = FIRST_PORT; l->held.n < count_here(l); port++) {
        const int fd = hold(host, port);
        if (fd >= 0)
            add_port(l, host, port, fd);
        else if (errno != EADDRINUSE || port == LAST_PORT)
            return cannot_hold(l, host, port);
    }
    return FL_OK;
}

/* Find which of the hosts is this one. */
static fl_err find_node(fl_launch *l, const char *hosts)
{
    char *rest = fl_arena_strdup(l->arena, hosts);
    for (char *host; (host = strtok_r(rest, ", ", &rest)); l->nodes++)
        if (!strcmp(host, l->opts->node_ip))
            l->node = l->nodes;
    if (l->node < 0)
        return fl_fail(FL_EINVAL,
                       "launch: --node_ip is \"%s\", which is not among "
                       "--cluster_node_ips \"%s\"",
                       l->opts->node_ip, hosts);
    return FL_OK;
}

fl_err fl_launch_ports(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const char *hosts = o->cluster_node_ips ? o->cluster_node_ips : o->node_ip;
    FL_TRY(find_node(l, hosts));
    if (o->endpoints && *o->endpoints)
        return take_endpoints(l, o->endpoints);
    if (l->nodes == 1 && !o->start_port)
        return find_ports(l);
    return take_hosts(l, hosts, o->start_port ? o->start_port : FIRST_PORT);
}
