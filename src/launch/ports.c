/* ports.c - where servers listen.
 *
 * A port that is found free may be gone when the server wants it. So we bind it
 * ourselves and never listen, for as long as the job runs: nobody else can take
 * it, and a server that is told so binds it, too.
 *
 *     while binding   SO_REUSEADDR: connections of an earlier job may linger
 *     from then on    SO_REUSEPORT instead: for our server, not for another
 *                     launcher, which binds without it */
#include "launch/launch.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FIRST_PORT = 6170,
    PORTS_TRIED = 1000
};

/* A socket that holds host:port; -1: taken (errno) or no such host (0). */
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

static fl_err cannot_hold(const char *host, int port)
{
    if (!errno)
        return fl_fail(FL_EINVAL, "launch: there is no host \"%s\"", host);
    return fl_fail(FL_EIO,
                   "launch: port %d on %s cannot be had: %s; choose others "
                   "with --start_port or --endpoints",
                   port, host, strerror(errno));
}

/* Ports for the servers of this host from `from` on; those that are taken are
 * passed over unless the user chose them. */
static fl_err hold_ports(fl_launch *l, const char *host, int from, bool chosen)
{
    int port = from;
    while (l->held.n < l->opts->servers) {
        const int fd = port < 65536 ? hold(host, port) : -1;
        if (fd >= 0) {
            fl_push(&l->held, fd);
            fl_push(&l->endpoints,
                    fl_arena_printf(l->arena, "%s:%d", host, port));
        } else if (chosen || !errno || port >= from + PORTS_TRIED) {
            return cannot_hold(host, port);
        }
        port++;
    }
    return FL_OK;
}

/* Every host has the same ports: those are chosen, so that all agree. */
static fl_err deal_hosts(fl_launch *l, const char *hosts, int from)
{
    char *text = fl_arena_printf(l->arena, "%s", hosts), *rest = text;
    for (char *host; (host = strtok_r(rest, ", ", &rest));) {
        const bool here = !strcmp(host, l->opts->node_ip);
        if (here)
            l->node = l->nodes;
        l->nodes++;
        if (here)
            FL_TRY(hold_ports(l, host, from, true));
        for (int i = 0; !here && i < l->opts->servers; i++)
            fl_push(&l->endpoints,
                    fl_arena_printf(l->arena, "%s:%d", host, from + i));
    }
    if (l->node < 0)
        return fl_fail(FL_EINVAL,
                       "launch: --node_ip is \"%s\", which is not among "
                       "--cluster_node_ips \"%s\"",
                       l->opts->node_ip, hosts);
    return FL_OK;
}

static fl_err take_endpoints(fl_launch *l)
{
    char *text = fl_arena_printf(l->arena, "%s", l->opts->endpoints);
    char *rest = text;
    for (char *at; (at = strtok_r(rest, ", ", &rest));) {
        char *colon = strrchr(at, ':');
        const int port = colon ? atoi(colon + 1) : 0;
        if (port < 1 || port > 65535)
            return fl_fail(FL_EINVAL,
                           "launch: endpoint \"%s\", expected host:port", at);
        const char *host =
            fl_arena_printf(l->arena, "%.*s", (int)(colon - at), at);
        const int fd = hold(host, port);
        if (fd < 0)
            return cannot_hold(host, port);
        fl_push(&l->held, fd);
        fl_push(&l->endpoints, at);
    }
    return FL_OK;
}

fl_err fl_launch_ports(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const int from = o->start_port ? o->start_port : FIRST_PORT;
    if (o->cluster_node_ips && strpbrk(o->cluster_node_ips, ", "))
        return deal_hosts(l, o->cluster_node_ips, from);
    l->nodes = 1;
    l->node = 0;
    if (o->endpoints)
        return take_endpoints(l);
    return hold_ports(l, o->node_ip, from, o->start_port);
}
