/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with random faults: ranks are late, ranks are killed, connections are
 * cut. Ranks are processes, so that they can be killed. Every rank must end in
 * time, with right results or with an error that names a rank. FL_SIM_SEEDS
 * sets how many seeds are tried. The seed of a failure is printed; FL_SIM_SEED
 * runs it alone. */
#include "net/ring.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/test.h"
#include "net/test_listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST = 5,
    CALLS = 12,
    LARGEST = 60000, /* elements of a call */
    SEEDS = 12,
    TEXT = 1024,
};

#define LIMIT (300 * FL_SEC) /* until all ranks of a job must have ended */

typedef enum fault {
    NO_FAULT,
    KILL, /* a rank is killed before a call */
    CUT,  /* a rank loses one of its connections before a call */
    FAULTS,
} fault;

/* What was drawn from the seed. Shared by the processes of the job. */
typedef struct storm {
    uint64_t seed;
    int world, victim, at; /* the call before which the fault happens */
    fault fault;
    bool over_tcp;
    int size[CALLS]; /* elements */
    char text[MOST][40];
    int listener[MOST];
    fl_err err[MOST];
    int wrong[MOST]; /* wrong results of each rank */
    char sentence[MOST][TEXT];
} storm;

static uint64_t draw(fl_entropy *e, uint64_t below)
{
    return e->draw(e) % below;
}

static storm *draw_storm(uint64_t seed)
{
    storm *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fl_entropy e = fl_entropy_fake(seed);
    CHECK(s != MAP_FAILED);
    s->seed = seed;
    s->world = 2 + (int)draw(&e, MOST - 1);
    s->victim = (int)draw(&e, (uint64_t)s->world);
    s->at = (int)draw(&e, CALLS + 1) - 1; /* -1: before it joins */
    s->fault = (fault)draw(&e, FAULTS);
    s->over_tcp = draw(&e, 2);
    for (int i = 0; i < CALLS; i++)
        s->size[i] = (int)draw(&e, draw(&e, 2) ? 100 : LARGEST);
    for (int i = 0; i < s->world; i++)
        s->listener[i] = test_listen(s->text[i]);
    return s;
}

/* --- one rank ------------------------------------------------------------- */

/* Shut down one of the sockets that this process has opened since `first`. */
static void cut_connection(fl_entropy *e, int first)
{
    int sockets[64], n = 0;
    struct stat st;
    for (int fd = first; fd < first + 64; fd++)
        if (!fstat(fd, &st) && S_ISSOCK(st.st_mode))
            sockets[n++] = fd;
    if (n)
        shutdown(sockets[draw(e, (uint64_t)n)], SHUT_RDWR);
}

static void suffer(const storm *s, int rank, int call, fl_entropy *e)
{
    if (draw(e, 4) == 0)
        poll(NULL, 0, (int)draw(e, 30)); /* this rank is late */
    if (rank != s->victim || call != s->at)
        return;
    if (s->fault == KILL)
        raise(SIGKILL);
    if (s->fault == CUT)
        cut_connection(e, s->listener[rank]);
}

static fl_err make_calls(storm *s, int rank, fl_mesh *m, fl_entropy *e)
{
    static float x[LARGEST];
    for (int c = 0; c < CALLS; c++) {
        suffer(s, rank, c, e);
        for (int i = 0; i < s->size[c]; i++)
            x[i] = (float)((i + c) % 7 + rank);
        FL_TRY(fl_ring_all_reduce(m, FL_REDUCE_SUM, FL_F32, x, s->size[c]));
        for (int i = 0; i < s->size[c]; i++)
            s->wrong[rank] += x[i] != (float)(s->world * ((i + c) % 7) +
                                              s->world * (s->world - 1) / 2);
    }
    return fl_ring_barrier(m);
}

static void run_rank(storm *s, int rank)
{
    const char *endpoints[MOST];
    fl_entropy e = fl_entropy_fake(s->seed * 31 + (uint64_t)rank + 1);
    fl_mesh *m = NULL;
    for (int i = 0; i < s->world; i++) {
        endpoints[i] = s->text[i];
        if (i != rank)
            close(s->listener[i]);
    }
    suffer(s, rank, -1, &e);
    s->err[rank] = fl_mesh_join(&(fl_mesh_opts){.endpoints = endpoints,
                                                .world = s->world,
                                                .rank = rank,
                                                .listener = s->listener[rank],
                                                .no_sharing = s->over_tcp,
                                                .join_timeout = 100 * FL_SEC,
                                                .timeout = 100 * FL_SEC},
                                &m);
    if (!s->err[rank])
        s->err[rank] = make_calls(s, rank, m, &e);
    if (s->err[rank])
        snprintf(s->sentence[rank], TEXT, "%s", fl_errmsg());
    fl_mesh_free(m);
}

/* --- the job -------------------------------------------------------------- */

static void tell(const storm *s, const char *what, int rank)
{
    print_error("seed %llu, %d ranks, fault %d of rank %d before call %d%s: "
                "rank %d %s: %s\n",
                (unsigned long long)s->seed, s->world, s->fault, s->victim,
                s->at, s->over_tcp ? ", over TCP" : "", rank, what,
                s->sentence[rank]);
}

/* Whether the rank ended as it should. */
static bool ended_well(const storm *s, int rank, int status)
{
    const bool killed = s->fault == KILL && rank == s->victim;
    char name[20];
    if (killed)
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!WIFEXITED(status) || WEXITSTATUS(status) || s->wrong[rank])
        return false;
    if (s->fault == NO_FAULT)
        return !s->err[rank];
    snprintf(name, sizeof name, "rank %d", s->victim);
    if (s->fault == KILL) /* no call after the kill can succeed */
        return s->err[rank] && strstr(s->sentence[rank], name);
    /* A cut connection that was not used any more has no effect. */
    return !s->err[rank] || strstr(s->sentence[rank], "rank ");
}

static bool run_storm(uint64_t seed)
{
    storm *s = draw_storm(seed);
    pid_t child[MOST];
    bool ok = true;
    for (int i = 0; i < s->world; i++)
        if (!(child[i] = fork())) {
            run_rank(s, i);
            _exit(0);
        }
    for (int i = 0; i < s->world; i++)
        close(s->listener[i]);
    const int64_t until = fl_clock_now(fl_clock_real()) + LIMIT;
    for (int i = 0; i < s->world; i++) {
        int status = 0;
        while (!waitpid(child[i], &status, WNOHANG) &&
               fl_clock_now(fl_clock_real()) < until)
            poll(NULL, 0, 2);
        if (fl_clock_now(fl_clock_real()) >= until) {
            kill(child[i], SIGKILL);
            waitpid(child[i], &status, 0);
            tell(s, "did not end", i);
            ok = false;
        } else if (!ended_well(s, i, status)) {
            tell(s, "ended wrongly", i);
            ok = false;
        }
    }
    munmap(s, sizeof *s);
    return ok;
}

static void every_rank_ends_under_every_fault(void)
{
    const char *one = getenv("FL_SIM_SEED"), *many = getenv("FL_SIM_SEEDS");
    const uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    const uint64_t n = one ? 1 : many ? strtoull(many, NULL, 10) / 50 : SEEDS;
    for (uint64_t seed = first; seed < first + n; seed++)
        CHECK(run_storm(seed));
}

const fl_test fl_tests[] = {
    {"every rank ends under every fault", every_rank_ends_under_every_fault},
    {0},
};
