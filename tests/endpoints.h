/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints.h - addresses for the servers of a job in one process. Tests only.
 */
#ifndef FL_TESTS_ENDPOINTS_H
#define FL_TESTS_ENDPOINTS_H

#include "base/test.h"
#include "fluid.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ENDPOINTS = 2
};

typedef struct endpoints {
    char endpoint[ENDPOINTS][32];
    char list[64]; /* "host:port,host:port" */
} endpoints;

/* Ports that nobody has: all are held before the first is given back. */
static inline void find_ports(int n, endpoints *e)
{
    int held[ENDPOINTS];
    e->list[0] = 0;
    for (int i = 0; i < n; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof at;
        held[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(!bind(held[i], (struct sockaddr *)&at, sizeof at));
        CHECK(!getsockname(held[i], (struct sockaddr *)&at, &size));
        snprintf(e->endpoint[i], sizeof e->endpoint[i], "127.0.0.1:%d",
                 ntohs(at.sin_port));
        snprintf(e->list + strlen(e->list), sizeof e->list - strlen(e->list),
                 "%s%s", i ? "," : "", e->endpoint[i]);
    }
    for (int i = 0; i < n; i++)
        close(held[i]);
}

#endif
