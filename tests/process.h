/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - the processes of a job, all in the process of a test. Each has an
 * engine of its own and shares nothing with the others but the network. Tests
 * only. */
#ifndef FL_TESTS_PROCESS_H
#define FL_TESTS_PROCESS_H

#include "base/test.h"
#include "fluid.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ENDPOINTS = 2
};

typedef struct endpoints {
    char endpoint[ENDPOINTS][32];
    char list[64]; /* "host:port,host:port" */
} endpoints;

/* Hold ports that nobody else has until this process ends, as paddle launch
 * does: only its own servers can bind them besides (launch/ports.c). */
static inline void find_ports(int n, endpoints *e)
{
    const int on = 1;
    e->list[0] = 0;
    setenv("FLUID_PORT_HELD", "1", 1);
    for (int i = 0; i < n; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof at;
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(!bind(fd, (struct sockaddr *)&at, sizeof at));
        CHECK(!getsockname(fd, (struct sockaddr *)&at, &size));
        CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
        snprintf(e->endpoint[i], sizeof e->endpoint[i], "127.0.0.1:%d",
                 ntohs(at.sin_port));
        snprintf(e->list + strlen(e->list), sizeof e->list - strlen(e->list),
                 "%s%s", i ? "," : "", e->endpoint[i]);
    }
}

typedef struct process {
    fl_engine *engine;
    fl_net *net;
    fl_var *loss;
    fl_cut *cut; /* NULL: a job without servers */
    fl_exe *exe;
    fl_scope *scope;
    const char *endpoint; /* of a server; NULL: a trainer */
} process;

/* The caller then builds p->net. */
static inline void init_process(process *p, const char *endpoint, bool no_fuse)
{
    *p = (process){.engine = fl_engine_new(), .endpoint = endpoint};
    p->net = fl_net_new(p->engine);
    p->exe = fl_exe_new(p->engine, &(fl_exe_opts){.no_fuse = no_fuse});
    p->scope = fl_scope_new();
}

static inline void transpile_process(process *p, const fl_transpile_opts *opts)
{
    CHECK_OK(fl_transpile(fl_net_main(p->net), fl_net_startup(p->net), opts,
                          &p->cut));
}

static inline void fini_process(process *p)
{
    fl_exe_free(p->exe);
    fl_scope_free(p->scope);
    fl_cut_free(p->cut);
    fl_net_free(p->net);
    fl_engine_free(p->engine); /* completes */
}

/* Run a program without feeds and fetches. */
static inline fl_err run_program(process *p, const fl_program *program)
{
    return fl_exe_run(p->exe, program, p->scope, 0, NULL, 0, NULL);
}

/* Be the server at p->endpoint until the job ends. */
static inline fl_err serve_job(process *p)
{
    fl_program *main, *startup;
    FL_TRY(fl_cut_server(p->cut, p->endpoint, &main, &startup));
    FL_TRY(run_program(p, startup));
    return run_program(p, main);
}

#endif
