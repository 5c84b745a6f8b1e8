/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include "net/test_tls.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* Two processes that are connected; what they use to speak. */
typedef struct pair {
    fl_tls *a, *b;
    int plain[2];
} pair;

static void connect_pair(pair *p, fl_tls *a, fl_tls *b)
{
    int ends[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    p->a = a;
    p->b = b;
    p->plain[0] = fl_tls_wrap(a, ends[0], false);
    p->plain[1] = b ? fl_tls_wrap(b, ends[1], true) : ends[1];
    CHECK_INT(p->plain[0] >= 0 && p->plain[1] >= 0, true);
}

static void end_pair(pair *p)
{
    close(p->plain[0]);
    close(p->plain[1]);
    fl_tls_free(p->a);
    fl_tls_free(p->b);
}

/* All n bytes; fewer: the other side has ended. */
static size_t read_all(int fd, char *to, size_t n)
{
    size_t got = 0;
    while (got < n) {
        struct pollfd f = {.fd = fd, .events = POLLIN};
        poll(&f, 1, 10000);
        const ssize_t k = recv(fd, to + got, n - got, 0);
        if (!k || (k < 0 && errno != EAGAIN))
            return got;
        got += k > 0 ? (size_t)k : 0;
    }
    return got;
}

static void carries_bytes_both_ways(void)
{
    fl_ca *ca;
    pair p;
    char got[6] = "";
    CHECK_OK(fl_ca_new(&ca));
    connect_pair(&p, make_tls(ca, NULL, 1), make_tls(ca, NULL, 1));
    for (int i = 0; i < 2; i++) {
        CHECK_INT((int)send(p.plain[i], "hello", 5, MSG_NOSIGNAL), 5);
        CHECK_INT((int)read_all(p.plain[!i], got, 5), 5);
        CHECK_STR(got, "hello");
    }
    end_pair(&p);
    fl_ca_free(ca);
}

/* Far more than all buffers hold, while both sides write. */
static void carries_floods_both_ways(void)
{
    enum {
        SIZE = 8 << 20
    };
    static char sent[SIZE], got[2][SIZE];
    size_t wrote[2] = {0}, read[2] = {0};
    fl_ca *ca;
    pair p;
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 2654435761u >> 24);
    CHECK_OK(fl_ca_new(&ca));
    connect_pair(&p, make_tls(ca, NULL, 1), make_tls(ca, NULL, 1));
    while (read[0] < SIZE || read[1] < SIZE) {
        struct pollfd f[2];
        for (int i = 0; i < 2; i++)
            f[i] = (struct pollfd){
                .fd = p.plain[i],
                .events = (short)(POLLIN | (wrote[i] < SIZE ? POLLOUT : 0))};
        CHECK_INT(poll(f, 2, 10000) > 0, true);
        for (int i = 0; i < 2; i++) {
            const ssize_t w = wrote[i] < SIZE
                                  ? send(p.plain[i], sent + wrote[i],
                                         SIZE - wrote[i], MSG_NOSIGNAL)
                                  : 0;
            const ssize_t r =
                recv(p.plain[i], got[i] + read[i], SIZE - read[i], 0);
            wrote[i] += w > 0 ? (size_t)w : 0;
            read[i] += r > 0 ? (size_t)r : 0;
        }
    }
    CHECK_INT(memcmp(got[0], sent, SIZE), 0);
    CHECK_INT(memcmp(got[1], sent, SIZE), 0);
    end_pair(&p);
    fl_ca_free(ca);
}

static void delivers_what_was_written_before_the_end(void)
{
    fl_ca *ca;
    pair p;
    char got[9] = "";
    CHECK_OK(fl_ca_new(&ca));
    connect_pair(&p, make_tls(ca, NULL, 1), make_tls(ca, NULL, 1));
    CHECK_INT((int)send(p.plain[0], "farewell", 8, MSG_NOSIGNAL), 8);
    close(p.plain[0]);
    fl_tls_free(p.a);
    CHECK_INT((int)read_all(p.plain[1], got, 9), 8);
    CHECK_STR(got, "farewell");
    close(p.plain[1]);
    fl_tls_free(p.b);
    fl_ca_free(ca);
}

/* Nobody hears a byte of the other. */
static void check_refused(fl_tls *a, fl_tls *b)
{
    pair p;
    char got;
    connect_pair(&p, a, b);
    (void)!send(p.plain[0], "secret", 6, MSG_NOSIGNAL);
    if (b)
        (void)!send(p.plain[1], "secret", 6, MSG_NOSIGNAL);
    for (int i = 0; i < (b ? 2 : 1); i++)
        CHECK_INT((int)read_all(p.plain[i], &got, 1), 0);
    end_pair(&p);
}

static void refuses_strangers(void)
{
    fl_ca *ca, *other;
    CHECK_OK(fl_ca_new(&ca));
    CHECK_OK(fl_ca_new(&other));
    /* One of another job; one that shows a certificate of another job; one
     * that has expired; each on either side. */
    check_refused(make_tls(other, NULL, 1), make_tls(ca, NULL, 1));
    check_refused(make_tls(ca, NULL, 1), make_tls(other, NULL, 1));
    check_refused(make_tls(ca, other, 1), make_tls(ca, NULL, 1));
    check_refused(make_tls(ca, NULL, 1), make_tls(ca, other, 1));
    check_refused(make_tls(ca, NULL, -1), make_tls(ca, NULL, 1));
    check_refused(make_tls(ca, NULL, 1), make_tls(ca, NULL, -1));
    fl_ca_free(ca);
    fl_ca_free(other);
}

/* A peer without TLS sees a handshake, and nothing of what was written. */
static void refuses_plain_text(void)
{
    fl_ca *ca;
    pair p;
    char got[256];
    CHECK_OK(fl_ca_new(&ca));
    connect_pair(&p, make_tls(ca, NULL, 1), NULL);
    CHECK_INT((int)send(p.plain[0], "secret", 6, MSG_NOSIGNAL), 6);
    CHECK_INT(read_all(p.plain[1], got, 100) == 100, true);
    CHECK_INT(memmem(got, 100, "secret", 6) == NULL, true);
    CHECK_INT((int)send(p.plain[1], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL),
              18);
    CHECK_INT((int)read_all(p.plain[0], got, 1), 0);
    end_pair(&p);
    fl_ca_free(ca);
}

static void names_the_file_that_is_wrong(void)
{
    fl_ca *ca, *other;
    char *cert, *key, *more, *none, folder[200];
    char a[256], b[256], c[256];
    fl_tls *t;
    const fl_disk *d = fl_disk_real();
    CHECK_OK(fl_ca_new(&ca));
    CHECK_OK(fl_ca_new(&other));
    CHECK_OK(fl_ca_issue(ca, "node1", 1, &cert, &key));
    CHECK_OK(fl_ca_issue(ca, "node1", 1, &none, &more));
    snprintf(folder, sizeof folder, "%s/tls-XXXXXX", fl_test_dir());
    CHECK_OK(d->mkdtemp(d, folder));
    snprintf(a, sizeof a, "%s/cert", folder);
    snprintf(b, sizeof b, "%s/key", folder);
    snprintf(c, sizeof c, "%s/none", folder);
    CHECK_OK(fl_disk_write(d, a, cert, strlen(cert), false));
    CHECK_OK(fl_disk_write(d, b, more, strlen(more), false));
    CHECK_OK(fl_disk_write(d, c, "none", 4, false));
    CHECK_ERR(fl_tls_new("/none", b, a, &t), FL_ENOENT, "/none");
    CHECK_ERR(fl_tls_new(c, b, a, &t), FL_EINVAL,
              "is not a certificate in PEM");
    CHECK_ERR(fl_tls_new(a, b, a, &t), FL_EINVAL, "is not the key of");
    CHECK_OK(fl_disk_write(d, b, key, strlen(key), false));
    CHECK_ERR(fl_tls_new(a, b, c, &t), FL_EINVAL,
              "has no certificate of an authority");
    CHECK_ERR(fl_ca_issue(ca, "a,DNS:b", 1, &cert, &key), FL_EINVAL,
              "\"a,DNS:b\" cannot be in a certificate");
    CHECK_OK(fl_disk_remove_tree(d, folder));
    fl_mem_free(cert);
    fl_mem_free(key);
    fl_mem_free(more);
    fl_mem_free(none);
    fl_ca_free(ca);
    fl_ca_free(other);
}

const fl_test fl_tests[] = {
    {"TLS carries bytes both ways", carries_bytes_both_ways},
    {"TLS carries floods both ways", carries_floods_both_ways},
    {"TLS delivers what was written before the end",
     delivers_what_was_written_before_the_end},
    {"TLS refuses strangers", refuses_strangers},
    {"TLS refuses plain text", refuses_plain_text},
    {"TLS names the file that is wrong", names_the_file_that_is_wrong},
    {0},
};
