/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce RANKS [tcp] - time of an all-reduce of floats between processes of
 * this host, through shared memory or over TCP. Prints a line of JSON for 4 KB,
 * 1 MB and 64 MB: the best of several samples, in microseconds. */
#include "net/ring.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST = 16,
    SAMPLES = 7,
};

static const size_t sizes[] = {4 << 10, 1 << 20, 64 << 20};

static int open_listener(char text[40])
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&a, size) || listen(fd, 64) ||
        getsockname(fd, (struct sockaddr *)&a, &size)) {
        perror("allreduce: listen");
        exit(1);
    }
    snprintf(text, 40, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

static void must(fl_err err)
{
    if (!err)
        return;
    fprintf(stderr, "allreduce: %s\n", fl_errmsg());
    exit(1);
}

static double sample_us(fl_mesh *m, float *x, size_t bytes)
{
    const int times = bytes <= 4096 ? 1000 : bytes <= 1 << 20 ? 100 : 3;
    must(fl_ring_barrier(m));
    const int64_t start = fl_clock_now(fl_clock_real());
    for (int i = 0; i < times; i++)
        must(fl_ring_all_reduce(m, FL_REDUCE_SUM, FL_F32, x,
                                (int64_t)(bytes / sizeof *x)));
    return (double)(fl_clock_now(fl_clock_real()) - start) / 1e3 / times;
}

/* As mpirun does where there are enough cores. */
static void pin_to_core(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void run_rank(const fl_mesh_opts *o)
{
    fl_mesh *m;
    float *x = fl_mem_alloc(64 << 20);
    memset(x, 0, 64 << 20);
    must(fl_mesh_join(o, &m));
    if (o->world <= fl_cores())
        pin_to_core(o->rank);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double best = 1e18;
        sample_us(m, x, sizes[s]);
        for (int i = 0; i < SAMPLES; i++) {
            const double us = sample_us(m, x, sizes[s]);
            best = us < best ? us : best;
        }
        if (!o->rank)
            printf("{\"ranks\": %d, \"over\": \"%s\", \"bytes\": %zu, \"us\": "
                   "%.1f}\n",
                   o->world, o->no_sharing ? "tcp" : "memory", sizes[s], best);
        fflush(stdout);
    }
    fl_mesh_free(m);
    fl_mem_free(x);
}

int main(int argc, char **argv)
{
    const int ranks = argc > 1 ? atoi(argv[1]) : 0;
    static char text[MOST][40];
    const char *endpoints[MOST];
    int listener[MOST], failed = 0, status;
    if (ranks < 1 || ranks > MOST) {
        fprintf(stderr, "allreduce RANKS [tcp]: RANKS is 1 to %d\n", MOST);
        return 2;
    }
    for (int i = 0; i < ranks; i++) {
        listener[i] = open_listener(text[i]);
        endpoints[i] = text[i];
    }
    for (int i = 0; i < ranks; i++)
        if (!fork()) {
            run_rank(&(fl_mesh_opts){.endpoints = endpoints,
                                     .world = ranks,
                                     .rank = i,
                                     .listener = listener[i],
                                     .no_sharing = argc > 2});
            return 0;
        }
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}
