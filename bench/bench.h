/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the programs here share that measure several processes. */
#ifndef FL_BENCH_H
#define FL_BENCH_H

#include <arpa/inet.h>
#include <errno.h>
#include <fluid.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static inline void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
            fl_errmsg());
    exit(1);
}

static inline void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static inline double seconds(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* This program once more. */
typedef struct child {
    pid_t pid;
    clockid_t cpu; /* its clock */
    int in;        /* closed, it may end */
    FILE *out;     /* what it prints */
} child;

static inline child start(const char *const *argv)
{
    child c;
    int to[2], from[2];
    posix_spawn_file_actions_t files;
    must(!pipe(to) && !pipe(from), "pipe");
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, to[0], 0);
    posix_spawn_file_actions_adddup2(&files, from[1], 1);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&files, to[i]);
        posix_spawn_file_actions_addclose(&files, from[i]);
    }
    must(!posix_spawn(&c.pid, "/proc/self/exe", &files, NULL,
                      (char *const *)argv, environ),
         "spawn");
    posix_spawn_file_actions_destroy(&files);
    close(to[0]);
    close(from[1]);
    c.in = to[1];
    c.out = fdopen(from[0], "r");
    must(c.out && !clock_getcpuclockid(c.pid, &c.cpu), "its clock");
    return c;
}

static inline void stop(child *c)
{
    int status = 0;
    close(c->in);
    waitpid(c->pid, &status, 0);
    must(!status, "a process that it started has failed");
    fclose(c->out);
}

/* Gigabytes a second, and seconds of CPU a gigabyte, of this process and that
 * of the other clock. */
typedef struct rate {
    double speed, cpu;
} rate;

/* The best of several samples of run(self, n), n times `gb` gigabytes: at least
 * so many, and as many as fit in the time. */
static inline rate best_rate(void (*run)(void *self, int64_t n), void *self,
                             int64_t least, double gb, clockid_t other,
                             double length)
{
    enum {
        SAMPLES = 5
    };
    const clockid_t own = CLOCK_PROCESS_CPUTIME_ID;
    rate best = {0, 0};
    int64_t n = least;
    for (int i = 0; i <= SAMPLES; i++) { /* the first one warms up */
        double wall = seconds(CLOCK_MONOTONIC);
        double used = seconds(own) + seconds(other);
        run(self, n);
        wall = seconds(CLOCK_MONOTONIC) - wall;
        used = seconds(own) + seconds(other) - used;
        const double moved = gb * (double)n;
        if (i && moved / wall > best.speed)
            best = (rate){moved / wall, used / moved};
        const int64_t fit = (int64_t)((double)n * length / SAMPLES / wall);
        n = fit > least ? fit : least;
    }
    return best;
}

/* "127.0.0.1:PORT,..": nobody has these ports now. */
static inline void free_ports(int n, char *list, size_t size)
{
    int fd[16];
    for (int i = 0; i < n && i < 16; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET};
        socklen_t len = sizeof at;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        must(!bind(fd[i], (struct sockaddr *)&at, len) &&
                 !getsockname(fd[i], (struct sockaddr *)&at, &len),
             "no free port");
        const size_t have = i ? strlen(list) : 0;
        snprintf(list + have, size - have, "%s127.0.0.1:%d", i ? "," : "",
                 ntohs(at.sin_port));
    }
    for (int i = 0; i < n && i < 16; i++)
        close(fd[i]);
}

#endif
