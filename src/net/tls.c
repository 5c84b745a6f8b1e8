/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - OpenSSL on one thread, which moves bytes between sockets.
 *
 *     tcp --SSL_read--> `in`  --> plain --> its user
 *     tcp <--SSL_write-- `out` <-- plain <-- its user
 *
 * Easy to get wrong:
 *
 * - What lies between peer and user must stay small: a listener judges
 *   strangers by what was read of their sockets, and the first words of a
 *   member must have reached their reader by then (listener.c).
 * - Others may hold the TCP socket, too (a listener watches it), so that it is
 *   shut down, and not only closed.
 * - A write that OpenSSL could not finish must be repeated with the same bytes
 *   before anything else is written. */
#include "net/tls.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/pool.h"
#include "base/vec.h"

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
    BUFFER = 1 << 17,      /* bytes in each direction */
    PAIR_BUFFER = 1 << 17, /* of the socket pair; the kernel takes twice that */
    PEM_BYTES = 1 << 20,
    DRAIN_MS = 2000, /* for what is on its way when all ends */
    TURNS = 8, /* moves of one connection before the others have their turn */
};

/* Bytes on their way. */
typedef struct buffer {
    char *at;
    size_t from, to; /* of what is in it */
    bool ended;      /* no more will come */
} buffer;

typedef struct tls_pair {
    SSL *ssl;
    int tcp, plain;
    bool want_write; /* OpenSSL waits for room in the socket */
    bool busy;       /* it may move more without waiting: OpenSSL may hold bytes
                        that the kernel does not know of */
    buffer in, out;
} tls_pair;

/* Thread: lock; above it, never changed; `pairs` is the thread's own. */
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

static size_t room_in(const buffer *b)
{
    return b->ended ? 0 : BUFFER - b->to;
}

static void forget_sent(buffer *b, size_t n)
{
    b->from += n;
    if (b->from == b->to)
        b->from = b->to = 0;
}

/* What a call of OpenSSL means: bytes, or 0 for later, or the end. */
static size_t hear_ssl(tls_pair *p, buffer *b, int n)
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

/* True: something moved. */
static bool decrypt_some(tls_pair *p)
{
    if (room_in(&p->in) < BUFFER / 2) /* let it become empty: fewer calls */
        return false;
    size_t got = 0, n;
    while (room_in(&p->in) &&
           (n = hear_ssl(p, &p->in,
                         SSL_read(p->ssl, p->in.at + p->in.to,
                                  (int)room_in(&p->in)))) > 0) {
        p->in.to += n;
        got += n;
    }
    return got;
}

static bool encrypt_some(tls_pair *p)
{
    size_t sent = 0, n;
    while (p->out.from < p->out.to &&
           (n = hear_ssl(p, &p->in,
                         SSL_write(p->ssl, p->out.at + p->out.from,
                                   (int)(p->out.to - p->out.from)))) > 0) {
        forget_sent(&p->out, n);
        sent += n;
    }
    return sent;
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Bytes that OpenSSL has not finished with must not move. */
static bool read_plain(tls_pair *p)
{
    if (p->out.to || p->out.ended)
        return false;
    const ssize_t n = recv(p->plain, p->out.at, BUFFER, 0);
    if (!n || (n < 0 && !is_later()))
        p->out.ended = true;
    p->out.to = n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool write_plain(tls_pair *p)
{
    if (p->in.from == p->in.to)
        return false;
    const ssize_t n = send(p->plain, p->in.at + p->in.from,
                           p->in.to - p->in.from, MSG_NOSIGNAL);
    if (n < 0 && !is_later()) { /* nobody reads any more */
        p->in.ended = p->out.ended = true;
        p->in.from = p->in.to = 0;
    }
    if (n > 0)
        forget_sent(&p->in, (size_t)n);
    return n > 0;
}

/* Move what can be moved; false: it has ended. */
static bool move_pair(tls_pair *p)
{
    bool moved = true;
    p->want_write = false;
    for (int turn = 0; moved && turn < TURNS; turn++) {
        moved = decrypt_some(p);
        moved |= write_plain(p);
        moved |= read_plain(p);
        moved |= encrypt_some(p);
    }
    p->busy = moved;
    const bool in_done = p->in.ended && p->in.from == p->in.to;
    const bool out_done = p->out.ended && p->out.from == p->out.to;
    if (out_done && !p->in.ended)
        (void)SSL_shutdown(p->ssl); /* the peer knows that this is the end */
    return !in_done && !out_done;
}

/* What to wait for; there may be bytes in OpenSSL's own buffer, but then there
 * was no room for them, and room comes with a write; or it is busy. */
static void poll_pair(const tls_pair *p, struct pollfd fds[2])
{
    const bool reads = room_in(&p->in) >= BUFFER / 2;
    fds[0] = (struct pollfd){.fd = p->tcp};
    fds[1] = (struct pollfd){.fd = p->plain};
    if (reads)
        fds[0].events |= POLLIN;
    if (p->want_write || p->out.from < p->out.to)
        fds[0].events |= POLLOUT;
    if (p->in.from < p->in.to)
        fds[1].events |= POLLOUT;
    if (!p->out.to)
        fds[1].events |= POLLIN;
    for (int i = 0; i < 2; i++) /* an end that we cannot act on would spin */
        if (!fds[i].events)
            fds[i].fd = -1;
}

/* --- the thread --- */

/* Take over what is new; false: it ends. */
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
    eventfd_read(t->wake, &seen);
}

/* At the end, users have closed their sockets: what they wrote still goes. */
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
            if (!move_pair(t->pairs.at[i])) {
                free_pair(t->pairs.at[i]);
                fl_remove(&t->pairs, i);
            }
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

static void set_buffers(int fd)
{
    const int size = PAIR_BUFFER;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
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
    set_buffers(ends[0]);
    set_buffers(ends[1]);
    tls_pair *p = fl_mem_alloc(sizeof *p);
    p->ssl = SSL_new(t->context);
    p->tcp = tcp;
    p->plain = ends[1];
    p->in.at = fl_mem_alloc(BUFFER);
    p->out.at = fl_mem_alloc(BUFFER);
    SSL_set_fd(p->ssl, tcp);
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

/* gRPC's clients ask for HTTP/2; whoever asks for nothing is no such client. */
static int choose_protocol(SSL *ssl, const unsigned char **out,
                           unsigned char *size, const unsigned char *offered,
                           unsigned int n, void *user)
{
    static const unsigned char h2[] = {2, 'h', '2'};
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, size, h2, sizeof h2, offered, n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static fl_err make_context(fl_tls *t, const char *certificate, const char *key,
                           const char *authority)
{
    t->context = SSL_CTX_new(TLS_method());
    if (!t->context)
        return fl_fail(FL_ENOMEM, "TLS: no memory for certificates");
    SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION);
    SSL_CTX_set_options(t->context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(t->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(t->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(t->context, 0);
    SSL_CTX_set_verify(t->context,
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_alpn_select_cb(t->context, choose_protocol, NULL);
    if (!use_certificate(t))
        return fl_fail(FL_EINVAL, "%s is no certificate in PEM: %s",
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
