/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_acceptor.c - the address "external:" of gRPC.
 *
 * When a server adds the port "external:NAME", gRPC opens no socket. It stores
 * an object of the C++ class grpc_core::TcpServerFdHandler where the channel
 * argument of that name points. The object's method Handle(listener, fd,
 * pending_read) takes an accepted socket. C++'s ExternalConnectionAcceptor is
 * made of the same parts.
 *
 * The class is not part of gRPC's C interface, so its layout is declared here,
 * as the ABI of C++ on Linux defines it, and the version of gRPC is checked.
 * The class has been the same since it was added in 2019. */
#include "net/grpc_acceptor.h"

#include "base/str.h"
#include "base/vec.h"

#include <arpa/inet.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    BUCKETS = 1024, /* of peers, by their port */
};

static const char name[] = "external:fluid";
static const char tested[] = "29."; /* gRPC 1.51; grpc_version_string */

typedef struct fd_handler fd_handler;
typedef struct fd_handler_methods {
    void (*destroy)(fd_handler *h);
    void (*delete)(fd_handler *h);
    void (*handle)(fd_handler *h, int listener, int fd,
                   grpc_byte_buffer *pending_read);
} fd_handler_methods;

struct fd_handler {
    const fd_handler_methods *methods;
};

/* An address; those of IPv4 in the form of IPv6. */
typedef struct peer {
    struct in6_addr host;
    int port;
    int older; /* next socket of the bucket; -1: there is none */
} peer;

/* Thread: `lock` guards the fields below it; those above it never change. */
struct fl_grpc_acceptor {
    fd_handler *handler; /* owned by the server */

    pthread_mutex_t lock;
    FL_VEC(peer) by_fd; /* port 0: no socket had this descriptor */
    int newest[BUCKETS];
};

/* --- peers --- */

static void set_host(peer *p, struct in_addr host)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(&p->host, mapped, sizeof mapped);
    memcpy((char *)&p->host + sizeof mapped, &host, sizeof host);
}

/* The peer of a socket. */
static bool read_peer(int fd, peer *out)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    if (getpeername(fd, (struct sockaddr *)&at, &size))
        return false;
    if (at.ss_family == AF_INET6) {
        out->host = ((const struct sockaddr_in6 *)&at)->sin6_addr;
        out->port = ntohs(((const struct sockaddr_in6 *)&at)->sin6_port);
    } else {
        set_host(out, ((const struct sockaddr_in *)&at)->sin_addr);
        out->port = ntohs(((const struct sockaddr_in *)&at)->sin_port);
    }
    return at.ss_family == AF_INET6 || at.ss_family == AF_INET;
}

/* A peer from gRPC's name of it. An address of IPv6 is in brackets and may have
 * a scope after a percent sign; all three characters are percent-encoded. */
static bool parse_peer(const char *text, peer *out)
{
    static const char open[] = "ipv6:%5B", plain[] = "ipv4:";
    const bool six = fl_starts_with(text, open);
    const char *port = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN];
    struct in_addr four;
    if (!six && !fl_starts_with(text, plain))
        return false;
    const char *from = text + strlen(six ? open : plain);
    const size_t n = six           ? strcspn(from, "%")
                     : port > from ? (size_t)(port - from)
                                   : 0;
    if (n >= sizeof host)
        return false;
    memcpy(host, from, n);
    host[n] = 0;
    out->port = atoi(port + 1);
    if (six)
        return inet_pton(AF_INET6, host, &out->host) == 1;
    if (inet_pton(AF_INET, host, &four) != 1)
        return false;
    set_host(out, four);
    return true;
}

static bool is_same(const peer *a, const peer *b)
{
    return a->port == b->port && !memcmp(&a->host, &b->host, sizeof a->host);
}

/* Take the peer that had this descriptor out of its bucket. */
static void forget_peer(fl_grpc_acceptor *a, int fd)
{
    const peer *p = &a->by_fd.at[fd];
    int *link = &a->newest[p->port % BUCKETS];
    if (!p->port)
        return;
    while (*link != fd)
        link = &a->by_fd.at[*link].older;
    *link = p->older;
}

static void add_peer(fl_grpc_acceptor *a, int fd, peer p)
{
    pthread_mutex_lock(&a->lock);
    while (a->by_fd.n <= fd)
        fl_push(&a->by_fd, (peer){0});
    forget_peer(a, fd);
    p.older = a->newest[p.port % BUCKETS];
    a->by_fd.at[fd] = p;
    a->newest[p.port % BUCKETS] = fd;
    pthread_mutex_unlock(&a->lock);
}

int fl_grpc_acceptor_find(fl_grpc_acceptor *a, const char *text)
{
    peer p;
    if (!parse_peer(text, &p))
        return -1;
    pthread_mutex_lock(&a->lock);
    int fd = a->newest[(unsigned)p.port % BUCKETS];
    while (fd >= 0 && !is_same(&a->by_fd.at[fd], &p))
        fd = a->by_fd.at[fd].older;
    pthread_mutex_unlock(&a->lock);
    return fd;
}

void fl_grpc_acceptor_take(fl_grpc_acceptor *a, int fd)
{
    peer p;
    if (read_peer(fd, &p)) /* otherwise gRPC closes it for the same reason */
        add_peer(a, fd, p);
    a->handler->methods->handle(a->handler, -1, fd, NULL);
}

/* --- start and end --- */

static void *copy_pointer(void *p)
{
    return p;
}

static void drop_pointer(void *p)
{
}

static int compare_pointers(void *a, void *b)
{
    return a < b ? -1 : a > b;
}

/* Create the server with the argument through which gRPC returns its handler.
 */
static grpc_server *create_server(const grpc_channel_args *args,
                                  fd_handler **handler)
{
    static const grpc_arg_pointer_vtable methods = {copy_pointer, drop_pointer,
                                                    compare_pointers};
    const grpc_arg out = {.type = GRPC_ARG_POINTER,
                          .key = (char *)name,
                          .value.pointer = {handler, &methods}};
    FL_VEC(grpc_arg) all = {0};
    for (size_t i = 0; i < args->num_args; i++)
        fl_push(&all, args->args[i]);
    fl_push(&all, out);
    grpc_server *s =
        grpc_server_create(&(grpc_channel_args){(size_t)all.n, all.at}, NULL);
    fl_vec_fini(&all);
    return s;
}

static grpc_server_credentials *make_credentials(const fl_tls *tls)
{
    const fl_tls_pem *pem = fl_tls_pem_of(tls);
    grpc_ssl_pem_key_cert_pair pair = {.private_key = pem->key,
                                       .cert_chain = pem->certificate};
    return grpc_ssl_server_credentials_create_ex(
        pem->authority, &pair, 1,
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, NULL);
}

fl_err fl_grpc_acceptor_new(const grpc_channel_args *args, const fl_tls *tls,
                            grpc_server **server, fl_grpc_acceptor **out)
{
    if (!fl_starts_with(grpc_version_string(), tested))
        return fl_fail(FL_EINVAL,
                       "TLS: servers need gRPC 1.51 (core %sx), and this is "
                       "core %s; install that version, or start the job "
                       "without certificates (--insecure)",
                       tested, grpc_version_string());
    fl_grpc_acceptor *a = fl_mem_alloc(sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    for (int i = 0; i < BUCKETS; i++)
        a->newest[i] = -1;
    grpc_server *s = create_server(args, &a->handler);
    grpc_server_credentials *shown = make_credentials(tls);
    grpc_server_add_http2_port(s, name, shown);
    grpc_server_credentials_release(shown);
    if (!a->handler) {
        grpc_server_destroy(s);
        fl_grpc_acceptor_free(a);
        return fl_fail(FL_EINVAL,
                       "TLS: gRPC did not accept the certificate of this "
                       "process; check FLUID_TLS_CERT, FLUID_TLS_KEY and "
                       "FLUID_TLS_CA");
    }
    *server = s;
    *out = a;
    return FL_OK;
}

void fl_grpc_acceptor_free(fl_grpc_acceptor *a)
{
    if (!a)
        return;
    pthread_mutex_destroy(&a->lock);
    fl_vec_fini(&a->by_fd);
    fl_mem_free(a);
}
