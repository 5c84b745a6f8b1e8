/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - the processes of a job on one host, from start to verdict.
 *
 *     env.c      what each process is told
 *     ports.c    endpoints, and ports that nobody else can take meanwhile
 *     process.c  starts processes, hears of their ends, leaves none behind
 *     launch.c   the order of things, and when to stop
 *     verdict.c  what is said at the end
 *
 * fluid.h has what users call. */
#ifndef FL_LAUNCH_LAUNCH_H
#define FL_LAUNCH_LAUNCH_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

#include <sys/types.h>

enum {
    FL_KEY_FD = 3 /* descriptor from which a rank reads the key of the job */
};

/* One process. */
typedef struct fl_proc {
    bool server;
    int id;               /* of the server or trainer, counted over all hosts */
    const char *endpoint; /* of a server or rank; NULL: a trainer of servers */
    const char *gpu;      /* FLAGS_selected_gpus, or NULL */
    const char *log;      /* its file */
    pid_t pid;            /* and process group */
    bool ended;
    bool empty;    /* the group has no members any more */
    int code;      /* what a shell would say: 128 + n for a signal */
    int signal;    /* that ended it, or 0 */
    int64_t began; /* ns */
    int64_t lived; /* ns, once it has ended */
    bool stopped;  /* we told it to stop: its code is no failure */
} fl_proc;

/* A socket that keeps the port of a server or rank of this host. */
typedef struct fl_held_port {
    int fd;
    int at; /* in the endpoints of the job */
} fl_held_port;

/* Thread: one. */
typedef struct fl_launch {
    const fl_launch_opts *opts;
    fl_arena *arena;
    char *mark;                     /* FLUID_JOB of all its processes */
    char **argv;                    /* what every process runs; NULL ends it */
    char *key;                      /* what ranks prove to each other that
                                       they know; NULL: we have made none */
    FL_VEC(const char *) endpoints; /* of all servers, or ranks, of the job */
    FL_VEC(fl_held_port) held;      /* those of this host */
    int nodes, node;                /* hosts of the job, and which is this */
    FL_VEC(fl_proc) procs;          /* servers, then trainers */
    int first;                      /* the one that failed first, or -1 */
    int asks;                       /* to stop, by the user */
    int signal;                     /* that asked */
    int restarts;                   /* so far */
    int64_t failed_at;              /* when a rank failed; 0: none has */
    int64_t began, stop_at;         /* kill at; 0: no */
    int guard;                      /* socket to the guard, or -1 */
    pid_t guard_pid;
    int64_t shown;  /* bytes of trainer 0's log */
    bool in_a_line; /* that it has not ended */
} fl_launch;

/* Endpoints of the job, and sockets that hold the ports of this host. */
fl_err fl_launch_ports(fl_launch *l) FL_MUST_CHECK;

/* The environment of a process: ours, without what could contradict, and what
 * it is in every dialect. In the arena; ends with NULL. */
char **fl_launch_env(fl_launch *l, const fl_proc *p);

/* What would be started, and with which variables, to stderr. */
void fl_launch_show_env(fl_launch *l);

/* A process that ends whom we leave behind, and everybody if we die. */
fl_err fl_guard_start(fl_launch *l) FL_MUST_CHECK;
void fl_guard_end(fl_launch *l); /* returns when it is done */

fl_err fl_proc_start(fl_launch *l, fl_proc *p) FL_MUST_CHECK;
void fl_proc_reap(fl_launch *l);             /* whoever has ended */
void fl_proc_signal(fl_proc *p, int signal); /* to its whole group */

/* What trainer 0 said since the last time, to stderr. */
void fl_launch_follow(fl_launch *l);
void fl_launch_verdict(const fl_launch *l);
/* "server 0", "trainer 1", "rank 1" */
const char *fl_proc_name(const fl_proc *p, char buf[32]);

#endif
