/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - the processes of a job, from start to verdict.
 *
 *     env.c      what each process is told
 *     ports.c    endpoints, and ports that nobody else can take meanwhile
 *     process.c  starts processes, hears of their ends, leaves none behind
 *     hosts.c    the same on other hosts, where agents do it
 *     agent.c    an agent: processes of one host for a launcher elsewhere
 *     channel.c  what launcher and agents say to each other
 *     mpi.c      launchers that mpirun has started agree on one job
 *     slurm.c    the hosts of a job of Slurm
 *     pod.c      the one process of a pod of Kubernetes
 *     k8s.c      the manifests of such pods
 *     launch.c   the order of things, and when to stop
 *     verdict.c  what is said at the end
 *     resume.c   what was launched, kept to be launched again
 *
 * fluid.h has what users call. */
#ifndef FL_LAUNCH_LAUNCH_H
#define FL_LAUNCH_LAUNCH_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "launch/channel.h"

#include <spawn.h>
#include <sys/types.h>

enum {
    FL_KEY_FD = 3, /* descriptor from which a rank reads the key of the job */
    FL_TLS_FD = 4, /* and those of its certificate, key and authority */
    FL_TLS_FILES = 3,
    FL_LAUNCH_ADDRESS = 64,  /* bytes of an address as text */
    FL_MOST_PROCESSES = 1000 /* of a kind on one host, or in pods */
};

typedef enum fl_host_state {
    FL_HOST_CALLED,  /* ssh was started */
    FL_HOST_ASKED,   /* its agent has answered, and prepares */
    FL_HOST_READY,   /* its ports are known */
    FL_HOST_REFUSED, /* `why` says what is wrong with it */
    FL_HOST_LOST,    /* it was ready; `why`. If processes may be started again
                        it is called again, and all begins anew */
} fl_host_state;

/* A host of the job that is reached by ssh, and the agent on it. */
typedef struct fl_host {
    const char *name; /* as the user wrote it: user@host:port */
    const char *host; /* of it */
    int number;       /* in the order of --hosts */
    fl_host_state state;
    const char *why;     /* it cannot be used */
    pid_t pid;           /* of ssh; 0: none */
    fl_channel channel;  /* to the agent */
    int errors;          /* stderr of ssh, or -1 */
    fl_str said;         /* the end of that */
    const char *folder;  /* the workspace, as the host says */
    const char *ports;   /* "host:port,host:port" */
    int64_t heard, told; /* when we last heard of it and told it something */
    int64_t sent;        /* bytes of the package */
    bool package_sent;
    bool certified;  /* it has its certificate */
    int64_t lost_at; /* since when it is called again, ns; 0: it is not */
    int64_t call_at; /* when it is called the next time */
} fl_host;

/* One process. */
typedef struct fl_proc {
    bool server;
    int id;               /* of the server or trainer, counted over all hosts */
    fl_host *host;        /* where it runs; NULL: on this host */
    int number;           /* in the list of processes */
    int place;            /* among the servers, or trainers, of its host */
    char **argv, **env;   /* an agent's: what it was told to run; or NULL */
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
    int restarts;  /* how often this process alone was started again */
    int tries;     /* of them in the minute that began at `minute` */
    int64_t minute;
    int64_t again_at; /* when it is started again; 0: it is not */
    bool lost;        /* its host no longer answers */
    bool reported;    /* an agent's: the launcher knows of its end */
    int reached;      /* FL_REACHED_ bits, once it has ended */
    struct {
        int code, signal, reached;
    } before; /* how the process ended that was started again as this one */
    int64_t shown; /* bytes of its log that were shown, or sent on */
    struct fl_progress_page *progress; /* of a process of this host, or NULL */
    int64_t steps;                     /* another host's report of them */
    int64_t steps_at;                  /* when that came; 0: never */
    double speed;                      /* steps a second between the last two */
    fl_str line; /* of its log, not ended yet; of another host */
    fl_str last; /* the last line of its log that was ended, likewise */
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
    struct fl_ca *ca;               /* of a job on other hosts; or NULL */
    bool with_tls;                  /* processes get certificates of ours */
    char *tls[FL_TLS_FILES];        /* an agent's: PEM of certificate, key and
                                       authority for its processes, or NULL */
    FL_VEC(const char *) endpoints; /* of all servers, or ranks, of the job */
    FL_VEC(fl_held_port) held;      /* those of this host */
    int nodes, node;                /* hosts of the job, and which is this */
    FL_VEC(fl_host)
    hosts;                  /* reached by ssh or srun; none: all is
                               here */
    char **start;           /* words of --ssh; NULL ends them */
    bool passive;           /* another task of Slurm is the launcher */
    const char *stamp;      /* when it began: 20180102030405 */
    const char *old_logs;   /* folder of the logs of the last run, or
                               NULL: there were none so far */
    int package;            /* file with the workspace, or -1 */
    FL_VEC(fl_proc) procs;  /* servers, then trainers */
    int first;              /* the one that failed first, or -1 */
    int named_by;           /* one that has named it in its log, or -1 */
    int asks;               /* to stop, by the user */
    int signal;             /* that asked */
    int restarts;           /* so far */
    bool killed_only;       /* a trainer that ends by itself is not started
                               again */
    bool told;              /* that a trainer has failed and the others go on */
    int64_t failed_at;      /* when a rank failed, or a server ended with the
                               job; 0: none has */
    int64_t began, stop_at; /* kill at; 0: no */
    int64_t show_at;        /* show all processes of all hosts at; 0: no */
    int64_t leave_at;       /* tell all to end at; 0: no */
    int guard;              /* socket to the guard, or -1 */
    pid_t guard_pid;
    bool in_a_line; /* trainer 0 has not ended the last line of its log */
} fl_launch;

/* Endpoints of the job, and sockets that hold the ports of this host. */
fl_err fl_launch_ports(fl_launch *l) FL_MUST_CHECK;

/* FLUID_DURABILITY of all processes. */
const char *fl_launch_level(const fl_launch *l);

/* The environment of a process: ours, without what could contradict, and what
 * it is in every dialect. In the arena; ends with NULL. For another host it is
 * what its agent adds to its own, see fl_launch_env_of. */
char **fl_launch_env(fl_launch *l, const fl_proc *p);

/* Whether "NAME=value" goes to other hosts: by its name or by --export. */
bool fl_launch_is_exported(const fl_launch *l, const char *entry);

/* The environment of this process with `more` (NULL ends it) in place of all
 * that could contradict. In the arena; ends with NULL. */
char **fl_launch_env_of(fl_launch *l, char *const *more);

/* A word as a shell reads it back, in the arena. */
const char *fl_launch_quoted(fl_launch *l, const char *word);

/* What would be started, and with which variables, to stderr. */
void fl_launch_show_env(fl_launch *l);

/* A process that ends whom we leave behind, and everybody if we die. */
fl_err fl_guard_start(fl_launch *l) FL_MUST_CHECK;
void fl_guard_end(fl_launch *l); /* returns when it is done */

fl_err fl_proc_start(fl_launch *l, fl_proc *p) FL_MUST_CHECK;
void fl_proc_reap(fl_launch *l);             /* whoever has ended */
void fl_proc_signal(fl_proc *p, int signal); /* to its whole group */
/* End what a process that has ended has left in its group. To be called before
 * it is started again. Blocks: a few seconds at most. */
void fl_proc_clear_group(const fl_launch *l, fl_proc *p);

/* The address at which other hosts reach this one: the first that is no
 * loopback address. */
const char *fl_launch_own_address(char out[FL_LAUNCH_ADDRESS]);

/* Agree with the launchers of the other ranks of MPI: the endpoints of all, a
 * key and certificates. Err: EINVAL, ENOENT (the library of MPI is not there),
 * EIO. */
fl_err fl_launch_join_mpi(fl_launch *l) FL_MUST_CHECK;

/* The hosts that Slurm names in short: "n[1-3,7]" becomes "n1,n2,n3,n7",
 * appended. Err: EINVAL. */
fl_err fl_slurm_expand(const char *list, fl_str *out) FL_MUST_CHECK;
/* The hosts of this job of Slurm, in the arena; *other: another task of it
 * starts the processes. Err: EINVAL. */
fl_err fl_slurm_hosts(fl_launch *l, const char **hosts,
                      bool *other) FL_MUST_CHECK;

/* Whether all flags fit --pod, if that was given. Err: EINVAL. */
fl_err fl_pod_check(const fl_launch_opts *o) FL_MUST_CHECK;
/* The endpoints of the job and the process of this pod, from its name. Err:
 * EINVAL. */
fl_err fl_launch_join_pod(fl_launch *l) FL_MUST_CHECK;
/* Blocks: the pod of a server that is done, until it is deleted. */
void fl_pod_rest(const fl_launch *l);

/* Add a process, which is not started yet. */
void fl_launch_add(fl_launch *l, bool server, int id, const char *endpoint,
                   fl_host *host, int place);

/* The hosts of --hosts or of Slurm, or none. */
fl_err fl_hosts_find(fl_launch *l) FL_MUST_CHECK;
/* Start ssh for each of them, prepare their workspaces and get their ports.
 * Err: EINVAL, EIO (all that are wrong are named), EINTR (it was asked to end;
 * the signal stays pending). */
fl_err fl_hosts_start(fl_launch *l) FL_MUST_CHECK;
void fl_hosts_hear(fl_launch *l); /* what has happened there */
/* All processes of all hosts, a line each, to stderr. */
void fl_hosts_show(fl_launch *l);
void fl_hosts_end(fl_launch *l); /* returns when nothing runs there */
/* What would be run to reach a host; in the arena. */
char **fl_host_command(fl_launch *l, const fl_host *h);
fl_err fl_host_run(fl_launch *l, fl_proc *p) FL_MUST_CHECK;
void fl_host_signal(const fl_proc *p, int signal);

/* A process has ended; `reached` has FL_REACHED_ bits. Notes whether it is the
 * first that failed. */
void fl_proc_note_end(fl_launch *l, fl_proc *p, int code, int signal,
                      int reached);
/* Whether a trainer has failed after it had completed, or a server after its
 * job had ended: the job is whole, but the rest of the script was not run. */
bool fl_proc_has_completed(const fl_proc *p);
/* Whether a process has failed only because the job has ended, or another rank
 * has. */
bool fl_proc_is_echo(const fl_launch *l, const fl_proc *p);
fl_err fl_proc_open_log(fl_launch *l, const fl_proc *p, int *out) FL_MUST_CHECK;
/* Attributes for posix_spawn: nothing of our signal handling goes to
 * children. */
void fl_proc_plain_signals(posix_spawnattr_t *a, short flags);

/* Was it asked to end? The signal stays pending. */
bool fl_launch_is_asked(void);

/* What trainer 0 said since the last time, to stderr. */
void fl_launch_follow(fl_launch *l);
/* If the process that failed first has ended only because the job did, look for
 * the one that is the cause. */
void fl_launch_find_cause(fl_launch *l);
void fl_launch_verdict(const fl_launch *l);
/* "server 0", "trainer 1", "rank 1" */
const char *fl_proc_name(const fl_proc *p, char buf[32]);
/* Whether the last line of its log is "KeyboardInterrupt". */
bool fl_proc_says_interrupt(const fl_proc *p);
/* "exit code 3", "signal 9 (Killed)" */
const char *fl_proc_how(const fl_proc *p, char buf[64]);

/* Write beside the snapshots of the job what was launched. Err: EIO; ETIMEOUT:
 * another job writes its snapshots there. */
fl_err fl_launch_remember(const fl_launch *l) FL_MUST_CHECK;

/* What was launched; all strings lie in the text that it was read from. */
typedef struct fl_launched {
    char *program, *folder;
    FL_VEC(char *) words; /* NULL behind the last */
    FL_VEC(char *) set;   /* variables, "name=value" */
} fl_launched;

/* Read what fl_launch_remember has written; `text` is changed, `path` is for
 * errors. fl_launched_fini in any case. Err: EPROTO. */
fl_err fl_launched_decode(fl_launched *l, const char *path,
                          char *text) FL_MUST_CHECK;
void fl_launched_fini(fl_launched *l);

#endif
