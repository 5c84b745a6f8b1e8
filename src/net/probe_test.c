/* SPDX-License-Identifier: Apache-2.0 */
#include "net/probe.h"

#include "base/test.h"
#include "net/rpc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Read the bytes `piece` at a time: frames may be split anywhere. */
static fl_probe_answer hear(const char *bytes, size_t n, size_t piece)
{
    fl_probe p = {0};
    fl_probe_answer a = FL_PROBE_MORE;
    for (size_t i = 0; i < n && !a; i += piece)
        a = fl_probe_hear(&p, bytes + i, n - i < piece ? n - i : piece);
    return a;
}

static void check_heard(const char *bytes, size_t n, fl_probe_answer want)
{
    for (size_t piece = 1; piece <= n; piece++)
        CHECK_INT(hear(bytes, n, piece), want);
}

#define SETTINGS "\0\0\6\4\0\0\0\0\0\0\4\0\100\0\0"
#define HEADERS  "\0\0\3\1\4\0\0\0\1\0\0\0"
#define DATA     "\0\0\7\0\0\0\0\0\1\0\0\0\0\2\10"

static void answers_are_understood(void)
{
    static const char serves[] = SETTINGS HEADERS DATA "\1",
                      starts[] = SETTINGS HEADERS DATA "\2",
                      refused[] = SETTINGS "\0\0\1\1\5\0\0\0\1\0",
                      reset[] = SETTINGS "\0\0\4\3\0\0\0\0\1\0\0\0\1",
                      goes[] = SETTINGS "\0\0\0\7\0\0\0\0\0",
                      empty[] = SETTINGS HEADERS "\0\0\0\0\1\0\0\0\1";
    check_heard(serves, sizeof serves - 1, FL_PROBE_SERVES);
    check_heard(starts, sizeof starts - 1, FL_PROBE_STARTS);
    check_heard(refused, sizeof refused - 1, FL_PROBE_FOREIGN);
    check_heard(reset, sizeof reset - 1, FL_PROBE_FOREIGN);
    check_heard(goes, sizeof goes - 1, FL_PROBE_FOREIGN);
    check_heard(empty, sizeof empty - 1, FL_PROBE_FOREIGN);
    check_heard(serves, sizeof serves - 2, FL_PROBE_MORE);
}

static void other_protocols_are_foreign(void)
{
    static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n",
                      ssh[] = "SSH-2.0-OpenSSH_9.2\r\n";
    check_heard(http, sizeof http - 1, FL_PROBE_FOREIGN);
    check_heard(ssh, sizeof ssh - 1, FL_PROBE_FOREIGN);
}

/* --- with a server --- */

static fl_probe_answer probe(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port)};
    unsigned char request[FL_PROBE_BYTES];
    const size_t n = fl_probe_request(request);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fl_probe p = {0};
    fl_probe_answer answer = FL_PROBE_MORE;
    CHECK(n <= sizeof request);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof a));
    CHECK_INT(send(fd, request, n, MSG_NOSIGNAL), n);
    while (!answer) {
        char buf[64];
        const ssize_t got = recv(fd, buf, sizeof buf, 0);
        CHECK(got > 0);
        answer = fl_probe_hear(&p, buf, (size_t)got);
    }
    close(fd);
    return answer;
}

static const fl_rpc_method methods[] = {{0}};

static void server_tells_whether_it_serves(void)
{
#ifdef FL_TSAN
    fl_test_skip("the thread sanitizer does not see into gRPC");
#endif
    fl_rpc *server;
    int port;
    CHECK_OK(
        fl_rpc_new(&(fl_rpc_opts){.methods = methods, .token = "x"}, &server));
    CHECK_OK(fl_rpc_listen(server, "127.0.0.1:0", &port));
    CHECK_INT(probe(port), FL_PROBE_STARTS);
    fl_rpc_healthy(server, true);
    CHECK_INT(probe(port), FL_PROBE_SERVES);
    fl_rpc_free(server);
}

const fl_test fl_tests[] = {
    {"answers to a probe are understood", answers_are_understood},
    {"other protocols are foreign", other_protocols_are_foreign},
    {"a server tells whether it serves", server_tells_whether_it_serves},
    {0},
};
