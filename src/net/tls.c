/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - OpenSSL on one thread, which moves bytes between sockets.
 *
 *     tcp --SSL_read--> `in`  --> plain --> its user
 *     tcp <--SSL_write-- `out` <-- plain <-- its user
 *
 * Easy to get wrong:
 *
 * - A forked child may hold a duplicate of the TCP socket, so close alone would
 *   not end the connection: it is shut down first.
 * - A write that OpenSSL could not finish must be repeated with the same bytes
 *   before anything else is written. */
#include "net/tls.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/pool.h"
#include "base/vec.h"
#include "net/aes.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* Plain bytes that are buffered for the user, and for the peer. */
    IN_BYTES = 1 << 17,
    OUT_BYTES = 1 << 19, /* large, so that the user and this thread
                            take turns rarely */
    /* Bytes of records that one system call reads or writes. */
    IN_RECORDS = IN_BYTES + (1 << 12),
    OUT_RECORDS = OUT_BYTES / 2 + (1 << 12),
    /* SO_SNDBUF of the two ends of the socket pair; the kernel doubles it. */
    IN_PAIR = 1 << 17,
    OUT_PAIR = 1 << 18,
    PEM_BYTES = 1 << 20,
    DRAIN_MS = 2000, /* fl_tls_free sends buffered bytes for that long */
    TURNS = 8, /* moves of one connection before the others have their turn */
};

/* Bytes that were received and not sent on yet: at[from] .. at[to - 1]. */
typedef struct buffer {
    char *at;
    size_t from, to;
    bool ended; /* the side that fills it has ended */
} buffer;

typedef struct tls_pair {
    SSL *ssl;
    int tcp, plain;
    bool ready[2];   /* tcp, plain: the last poll reported an event of it */
    bool want_write; /* wait until `tcp` is writable */
    bool unsent;     /* records are left that `tcp` has not taken */
    bool held;       /* OpenSSL has received bytes for which `in` had no room;
                        poll does not report them */
    bool busy;       /* more can be moved without waiting for poll */
    buffer in, out;
} tls_pair;

/* Thread: `lock` guards the fields below it up to `ending`; those above it
 * never change; `pairs` and `polls` belong to the thread of run_tls. */
struct fl_tls {
    SSL_CTX *context;
    fl_tls_pem pem;
    int wake;

    pthread_mutex_t lock;
    fl_pool *pool; /* NULL: nothing was wrapped yet */
    fl_group group;
    FL_VEC(tls_pair *) fresh; /* the thread has not seen them yet */
    bool ending;

    FL_VEC(tls_pair *) pairs;
    FL_VEC(struct pollfd) polls;
};

/* --- a pair --- */

static void free_pair(tls_pair *p)
{
    shutdown(p->tcp, SHUT_RDWR);
    SSL_free(p->ssl);
    close(p->tcp);
    close(p->plain);
    fl_mem_free(p->in.at);
    fl_mem_free(p->out.at);
    fl_mem_free(p);
}

/* Bytes that `in` can take. */
static size_t room_in(const buffer *in)
{
    return in->ended ? 0 : IN_BYTES - in->to;
}

static void forget_sent(buffer *b, size_t n)
{
    b->from += n;
    if (b->from == b->to)
        b->from = b->to = 0;
}

/* The number of bytes that SSL_read or SSL_write has moved, from its result n.
 * 0: it must be repeated later, or, if b->ended is set, the connection has
 * ended. */
static size_t count_moved(tls_pair *p, buffer *b, int n)
{
    const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(p->ssl, n);
    if (n > 0)
        return (size_t)n;
    if (why == SSL_ERROR_WANT_WRITE)
        p->want_write = true;
    else if (why != SSL_ERROR_WANT_READ)
        b->ended = true;
    ERR_clear_error();
    return 0;
}

/* Decrypt what OpenSSL and the socket have, until `in` is full. The next poll
 * reports what is left in the socket. */
static void decrypt_some(tls_pair *p)
{
    bool more = p->held || p->ready[0];
    if (room_in(&p->in) < IN_BYTES / 2) /* fewer and larger reads */
        return;
    while (more && room_in(&p->in)) {
        const size_t n = count_moved(
            p, &p->in,
            SSL_read(p->ssl, p->in.at + p->in.to, (int)room_in(&p->in)));
        p->in.to += n;
        more =
            n && (SSL_has_pending(p->ssl) || BIO_pending(SSL_get_rbio(p->ssl)));
    }
    p->held = more;
    p->ready[0] = false;
}

/* Write the records that the socket has not taken yet. */
static void send_records(tls_pair *p)
{
    BIO *records = SSL_get_wbio(p->ssl);
    p->unsent = BIO_flush(records) <= 0;
    if (p->unsent && BIO_should_retry(records))
        p->want_write = true;
    else if (p->unsent)
        p->in.ended = true;
}

static void encrypt_some(tls_pair *p)
{
    bool more = p->out.from < p->out.to;
    if (p->unsent)
        send_records(p);
    if (p->unsent || !more)
        return;
    while (more && p->out.from < p->out.to) {
        const size_t n = count_moved(p, &p->in,
                                     SSL_write(p->ssl, p->out.at + p->out.from,
                                               (int)(p->out.to - p->out.from)));
        forget_sent(&p->out, n);
        more = n;
    }
    send_records(p);
    /* SSL_write may have read more than the handshake needed */
    p->held |= BIO_pending(SSL_get_rbio(p->ssl)) > 0;
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Read only into an empty `out`: OpenSSL may have to repeat a write with the
 * same bytes. */
static void read_plain(tls_pair *p)
{
    if (p->out.to || p->out.ended || !p->ready[1])
        return;
    const ssize_t n = recv(p->plain, p->out.at, OUT_BYTES, 0);
    if (!n || (n < 0 && !is_later()))
        p->out.ended = true;
    p->out.to = n > 0 ? (size_t)n : 0;
    p->ready[1] = false;
}

static void write_plain(tls_pair *p)
{
    if (p->in.from == p->in.to)
        return;
    const ssize_t n = send(p->plain, p->in.at + p->in.from,
                           p->in.to - p->in.from, MSG_NOSIGNAL);
    if (n < 0 && !is_later()) { /* nobody reads any more */
        p->in.ended = p->out.ended = true;
        p->in.from = p->in.to = 0;
    }
    if (n > 0)
        forget_sent(&p->in, (size_t)n);
}

/* Move bytes in both directions. False: the connection has ended. */
static bool move_pair(tls_pair *p)
{
    p->want_write = false;
    for (int turn = 0; turn < TURNS && (!turn || p->busy); turn++) {
        decrypt_some(p);
        write_plain(p);
        read_plain(p);
        encrypt_some(p);
        p->busy = p->held && !p->in.to;
    }
    const bool in_done = p->in.ended && p->in.from == p->in.to;
    const bool out_done =
        p->out.ended && p->out.from == p->out.to && !p->unsent;
    if (out_done && !p->in.ended)
        (void)SSL_shutdown(p->ssl); /* the peer knows that this is the end */
    return !in_done && !out_done;
}

/* The events to wait for. Bytes that OpenSSL holds need no event of `tcp`, only
 * room in `in`. */
static void poll_pair(const tls_pair *p, struct pollfd fds[2])
{
    fds[0] = (struct pollfd){.fd = p->tcp};
    fds[1] = (struct pollfd){.fd = p->plain};
    if (!p->held && room_in(&p->in) >= IN_BYTES / 2)
        fds[0].events |= POLLIN;
    if (p->want_write)
        fds[0].events |= POLLOUT;
    if (p->in.from < p->in.to)
        fds[1].events |= POLLOUT;
    if (!p->out.to)
        fds[1].events |= POLLIN;
    for (int i = 0; i < 2; i++) /* poll would report POLLHUP at once, always */
        if (!fds[i].events)
            fds[i].fd = -1;
}

/* --- the thread --- */

/* Add the new pairs to `pairs`. False: fl_tls_free was called. */
static bool take_fresh(fl_tls *t)
{
    pthread_mutex_lock(&t->lock);
    for (int64_t i = 0; i < t->fresh.n; i++)
        fl_push(&t->pairs, t->fresh.at[i]);
    t->fresh.n = 0;
    const bool on = !t->ending;
    pthread_mutex_unlock(&t->lock);
    return on;
}

static void wait_pairs(fl_tls *t, int ms)
{
    eventfd_t seen;
    t->polls.n = 0;
    fl_push(&t->polls, ((struct pollfd){.fd = t->wake, .events = POLLIN}));
    for (int64_t i = 0; i < t->pairs.n; i++) {
        struct pollfd fds[2];
        if (t->pairs.at[i]->busy)
            ms = 0;
        poll_pair(t->pairs.at[i], fds);
        fl_push(&t->polls, fds[0]);
        fl_push(&t->polls, fds[1]);
    }
    poll(t->polls.at, (nfds_t)t->polls.n, ms);
    if (t->polls.at[0].revents)
        eventfd_read(t->wake, &seen);
    for (int64_t i = 0; i < 2 * t->pairs.n; i++)
        t->pairs.at[i / 2]->ready[i % 2] = t->polls.at[1 + i].revents;
}

/* Move the bytes of one pair, if any can be moved. */
static void run_pair(fl_tls *t, int64_t i)
{
    tls_pair *p = t->pairs.at[i];
    if (!p->ready[0] && !p->ready[1] && !p->busy)
        return;
    if (!move_pair(p)) {
        free_pair(p);
        fl_remove(&t->pairs, i);
    }
}

/* When fl_tls_free was called, users have closed their sockets; what they wrote
 * before is still sent. */
static void run_tls(void *arg)
{
    fl_tls *t = arg;
    int64_t until = 0;
    for (;;) {
        const bool on = take_fresh(t);
        const int64_t now = fl_clock_now(fl_clock_real());
        if (!on && !until)
            until = now + DRAIN_MS * FL_MS;
        if (!on && (!t->pairs.n || now > until))
            return;
        for (int64_t i = t->pairs.n - 1; i >= 0; i--)
            run_pair(t, i);
        wait_pairs(t, on ? -1 : 10);
    }
}

/* --- wrapping --- */

static fl_err start_thread(fl_tls *t)
{
    pthread_mutex_lock(&t->lock);
    fl_err err = FL_OK;
    if (!t->pool) {
        err = fl_pool_new("tls", 1, &t->pool);
        if (!err)
            fl_pool_submit(t->pool, &t->group, run_tls, t);
    }
    pthread_mutex_unlock(&t->lock);
    return err;
}

static void set_buffer(int fd, int size)
{
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

/* Records are gathered in both directions, so that a call of the kernel moves
 * many. OpenSSL's own read-ahead would move all that follows a record. */
static void set_socket(SSL *ssl, int tcp)
{
    BIO *records = BIO_new(BIO_f_buffer());
    BIO_set_read_buffer_size(records, IN_RECORDS);
    BIO_set_write_buffer_size(records, OUT_RECORDS);
    BIO_push(records, BIO_new_socket(tcp, BIO_NOCLOSE));
    SSL_set_bio(ssl, records, records);
}

int fl_tls_wrap(fl_tls *t, int tcp, bool accepted)
{
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   ends) ||
        start_thread(t)) {
        close(tcp);
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        return -1;
    }
    set_buffer(ends[0], OUT_PAIR);
    set_buffer(ends[1], IN_PAIR);
    tls_pair *p = fl_mem_alloc(sizeof *p);
    p->ssl = SSL_new(t->context);
    p->tcp = tcp;
    p->plain = ends[1];
    p->in.at = fl_mem_alloc(IN_BYTES);
    p->out.at = fl_mem_alloc(OUT_BYTES);
    p->ready[0] = p->ready[1] = true; /* the first move begins the handshake */
    set_socket(p->ssl, tcp);
    if (accepted)
        SSL_set_accept_state(p->ssl);
    else
        SSL_set_connect_state(p->ssl);
    pthread_mutex_lock(&t->lock);
    fl_push(&t->fresh, p);
    pthread_mutex_unlock(&t->lock);
    eventfd_write(t->wake, 1);
    return ends[0];
}

/* --- certificates --- */

static const char *ssl_why(void)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return why ? why : "it is empty";
}

static fl_err read_pem(const char *path, char **out)
{
    fl_str text = {0};
    const fl_err err =
        fl_disk_real()->read(fl_disk_real(), path, PEM_BYTES, &text);
    if (err)
        fl_str_fini(&text);
    else
        *out = fl_str_take(&text);
    return err;
}

static bool use_certificate(fl_tls *t)
{
    BIO *bio = BIO_new_mem_buf(t->pem.certificate, -1);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    bool ok = x && SSL_CTX_use_certificate(t->context, x) == 1;
    X509_free(x);
    while (ok && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
        ok = SSL_CTX_add0_chain_cert(t->context, x) == 1;
    BIO_free(bio);
    if (ok)
        ERR_clear_error(); /* the end of the text */
    return ok;
}

static bool use_key(fl_tls *t)
{
    BIO *bio = BIO_new_mem_buf(t->pem.key, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    const bool ok = key && SSL_CTX_use_PrivateKey(t->context, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

static bool use_authority(fl_tls *t)
{
    BIO *bio = BIO_new_mem_buf(t->pem.authority, -1);
    X509_STORE *store = SSL_CTX_get_cert_store(t->context);
    int n = 0;
    for (X509 *x; (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); n++) {
        X509_STORE_add_cert(store, x);
        X509_free(x);
    }
    BIO_free(bio);
    if (n)
        ERR_clear_error();
    return n;
}

/* For TLS 1.3; the server's order decides. Keys of 128 bits are long enough
 * for the traffic of a job, and need a tenth less time than 256 bits. */
static const char suites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                             "TLS_CHACHA20_POLY1305_SHA256";

/* A gRPC server ends a connection that does not ask for HTTP/2; others ignore
 * the request. */
static const unsigned char h2[] = {2, 'h', '2'};

static fl_err make_context(fl_tls *t, const char *certificate, const char *key,
                           const char *authority)
{
    t->context = SSL_CTX_new(TLS_method());
    if (!t->context)
        return fl_fail(FL_ENOMEM, "TLS: no memory for certificates");
    SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION);
    SSL_CTX_set_options(t->context, SSL_OP_NO_RENEGOTIATION |
                                        SSL_OP_IGNORE_UNEXPECTED_EOF |
                                        SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_ciphersuites(t->context, suites);
    SSL_CTX_set_mode(t->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(t->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(t->context, 0);
    SSL_CTX_set_verify(t->context,
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_alpn_protos(t->context, h2, sizeof h2);
    if (!use_certificate(t))
        return fl_fail(FL_EINVAL, "%s is not a certificate in PEM: %s",
                       certificate, ssl_why());
    if (!use_key(t))
        return fl_fail(FL_EINVAL, "%s is not the key of %s: %s", key,
                       certificate, ssl_why());
    if (!use_authority(t))
        return fl_fail(FL_EINVAL, "%s has no certificate of an authority: %s",
                       authority, ssl_why());
    return FL_OK;
}

fl_err fl_tls_new(const char *certificate, const char *key,
                  const char *authority, fl_tls **out)
{
    fl_tls *t = fl_mem_alloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fl_err err = read_pem(certificate, &t->pem.certificate);
    if (!err)
        err = read_pem(key, &t->pem.key);
    if (!err)
        err = read_pem(authority, &t->pem.authority);
    if (!err)
        err = make_context(t, certificate, key, authority);
    if (err)
        fl_tls_free(t);
    else
        *out = t;
    return err;
}

void fl_tls_free(fl_tls *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_mutex_unlock(&t->lock);
    eventfd_write(t->wake, 1);
    fl_pool_free(t->pool);
    (void)take_fresh(t);
    for (int64_t i = 0; i < t->pairs.n; i++)
        free_pair(t->pairs.at[i]);
    fl_vec_fini(&t->pairs);
    fl_vec_fini(&t->fresh);
    fl_vec_fini(&t->polls);
    SSL_CTX_free(t->context);
    if (t->pem.key)
        OPENSSL_cleanse(t->pem.key, strlen(t->pem.key));
    fl_mem_free(t->pem.certificate);
    fl_mem_free(t->pem.key);
    fl_mem_free(t->pem.authority);
    pthread_mutex_destroy(&t->lock);
    close(t->wake);
    fl_mem_free(t);
}

const fl_tls_pem *fl_tls_pem_of(const fl_tls *t)
{
    return &t->pem;
}
