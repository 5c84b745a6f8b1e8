/* SPDX-License-Identifier: Apache-2.0 */
/* test_listen.h - a socket of this host that listens on a free port. Tests
 * only. */
#ifndef FL_NET_TEST_LISTEN_H
#define FL_NET_TEST_LISTEN_H

#include "base/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

/* Listen on a free port of loopback; text becomes "host:port". */
static inline int test_listen(char text[40])
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(!bind(fd, (struct sockaddr *)&a, size) && !listen(fd, 64));
    CHECK(!getsockname(fd, (struct sockaddr *)&a, &size));
    snprintf(text, 40, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

#endif
