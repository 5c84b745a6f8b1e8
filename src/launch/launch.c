/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - the processes of a job, until all have ended.
 *
 * If a trainer fails, the others go on, and the end of the job decides. If a
 * server fails, parameters are lost and all processes are stopped. If a rank of
 * a collective job fails, the others end too; then all ranks may be started
 * again. A trainer or server that is killed is started again alone, so often
 * within a minute, a server only if its state outlives it; a trainer that ends
 * with a code other than 0 only if --max_restarts was given. Ctrl-C is sent to
 * trainers first, which finish their step; a second Ctrl-C ends all processes,
 * as SIGTERM and SIGHUP do at once. */
#include "launch/launch.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/flag.h"
#include "base/progress.h"
#include "base/random.h"
#include "protocol/job.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MS  INT64_C(1000000)
#define SEC (1000 * MS)

enum {
    RESTARTS = 3,   /* of a killed process in a minute, by default */
    MINUTE = 60,    /* s for which restarts are counted */
    MAX_PAUSE = 8,  /* s between the end of a process and its restart */
    GRACE = 5,      /* s between SIGTERM and SIGKILL */
    HOST_GRACE = 3, /* the same with several hosts: after Ctrl-C */
    HOST_LEAVE = 5, /* s for trainers to leave before all are told to end */
    PATIENCE = 30,  /* s that servers may outlive trainers: */
    LINGER = 8,     /* if all trainers failed; servers answer for 5 s */
    ASKED = 1,      /* if trainers were asked to leave and have saved */
    ECHO = 5,       /* s between the end of a process that ended with the job
                       and the end of the one that is the cause */
};

static int64_t now_ns(void)
{
    return fl_clock_now(fl_clock_real());
}

/* Refuse flags that would have no effect without other hosts: who gives them
 * believes that the job runs there. --export is harmless: processes of this
 * host have all variables, and paddle resume keeps those. */
static fl_err check_host_flags(const fl_launch_opts *o)
{
    const char *flag = o->package          ? "job_dispatch_package"
                       : o->workspace      ? "job_workspace"
                       : o->workspace_root ? "job_root"
                       : o->ssh            ? "ssh"
                       : o->remote_paddle  ? "remote_paddle"
                                           : NULL;
    if (!flag || o->hosts || o->slurm)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "launch: --%s is only for jobs on other hosts: name them "
                   "with --hosts or --hostfile, or use --slurm",
                   flag);
}

static fl_err check_opts(const fl_launch_opts *o)
{
    fl_job level;
    if (o->n < 1)
        return fl_fail(
            FL_EINVAL,
            "launch: no program was given: name a script or a command to run");
    if (o->durability && *o->durability)
        FL_TRY(fl_job_level(&level, "launch: --durability", o->durability));
    FL_TRY(fl_flags_check());
    FL_TRY(fl_pod_check(o));
    if (o->collective && o->trainers < 1)
        return fl_fail(FL_EINVAL,
                       "launch: %d ranks were asked for, expected at least "
                       "one; see --worker_num",
                       o->trainers);
    if (o->gpus && *o->gpus && !o->collective)
        return fl_fail(FL_EINVAL,
                       "launch: --selected_gpus is only for --mode collective, "
                       "where it says how many trainers start; with servers, "
                       "say --worker_num");
    if (o->max_restarts < 0)
        return fl_fail(FL_EINVAL,
                       "launch: --max_restarts is %d, expected 0 or more",
                       o->max_restarts);
    if (!o->collective && (o->servers < 1 || o->trainers < 1))
        return fl_fail(FL_EINVAL,
                       "launch: %d servers and %d trainers were asked for, "
                       "expected at least one of each; see --server_num and "
                       "--worker_num",
                       o->servers, o->trainers);
    if (o->servers > FL_MOST_PROCESSES || o->trainers > FL_MOST_PROCESSES)
        return fl_fail(FL_EINVAL,
                       "launch: %d servers and %d trainers on one host were "
                       "asked for, expected at most %d of each; see "
                       "--server_num and --worker_num",
                       o->servers, o->trainers, FL_MOST_PROCESSES);
    if (o->start_port < 0 || o->start_port > 65535)
        return fl_fail(FL_EINVAL,
                       "launch: --start_port is %d, expected a number from 1 "
                       "to 65535",
                       o->start_port);
    FL_TRY(check_host_flags(o));
    if (!o->hosts && !o->slurm && fl_ends_with(o->command[0], ".py") &&
        access(o->command[0], R_OK))
        return fl_fail(FL_ENOENT, "launch: script %s: %s", o->command[0],
                       strerror(errno));
    return FL_OK;
}

/* A script is run by Python with unbuffered output. */
static void make_argv(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const char *python = o->python ? o->python : fl_flag_text("PADDLE_PYTHON");
    int at = 0;
    l->argv = fl_arena_alloc(l->arena, (size_t)(o->n + 3) * sizeof *l->argv);
    if (fl_ends_with(o->command[0], ".py")) {
        l->argv[at++] = (char *)(python ? python : "python3");
        l->argv[at++] = "-u";
    }
    for (int i = 0; i < o->n; i++)
        l->argv[at++] = (char *)o->command[i];
    l->argv[at] = NULL;
}

/* The i-th element of the list, or NULL. */
static const char *gpu_of(fl_launch *l, int i)
{
    char *rest = fl_arena_strdup(l->arena, l->opts->gpus ? l->opts->gpus : "");
    char *gpu;
    do
        gpu = strtok_r(rest, ", ", &rest);
    while (gpu && i--);
    return gpu;
}

void fl_launch_add(fl_launch *l, bool server, int id, const char *endpoint,
                   fl_host *host, int place)
{
    const fl_proc p = {
        .server = server,
        .id = id,
        .host = host,
        .number = (int)l->procs.n,
        .place = place,
        .ended = true, /* not started yet */
        .endpoint = endpoint,
        .gpu = gpu_of(l, (int)l->procs.n),
        .log = fl_arena_printf(l->arena, "%s/%s.%d", l->opts->log_dir,
                               server ? "serverlog" : "workerlog", id),
    };
    fl_push(&l->procs, p);
}

static void add_all(fl_launch *l)
{
    const int trainers = l->opts->collective ? 0 : l->opts->trainers;
    const int each = l->opts->collective ? l->opts->trainers : l->opts->servers;
    for (int64_t i = 0; i < l->held.n; i++)
        fl_launch_add(l, !l->opts->collective, l->held.at[i].at,
                      l->endpoints.at[l->held.at[i].at], NULL, (int)i);
    for (int64_t i = 0; l->hosts.n && i < l->endpoints.n; i++)
        fl_launch_add(l, !l->opts->collective, (int)i, l->endpoints.at[i],
                      &l->hosts.at[i / each], (int)i % each);
    for (int i = 0; i < trainers && !l->hosts.n; i++)
        fl_launch_add(l, false, l->node * trainers + i, NULL, NULL, i);
    for (int i = 0; i < trainers * (int)l->hosts.n; i++)
        fl_launch_add(l, false, i, NULL, &l->hosts.at[i / trainers],
                      i % trainers);
}

/* The signal stays pending; wait_all takes it. */
bool fl_launch_is_asked(void)
{
    sigset_t pending;
    return !sigpending(&pending) &&
           (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
            sigismember(&pending, SIGHUP));
}

/* Processes that were not started count as ended. */
static fl_err start_all(fl_launch *l)
{
    for (int64_t i = 0; i < l->procs.n && !fl_launch_is_asked(); i++)
        FL_TRY(fl_proc_start(l, &l->procs.at[i]));
    return FL_OK;
}

static void show_plan(const fl_launch *l)
{
    char name[32];
    for (int64_t i = 0; i < l->procs.n; i++) {
        const fl_proc *p = &l->procs.at[i];
        fprintf(stderr, "launch: %s%s%s is ", fl_proc_name(p, name),
                p->endpoint ? " at " : "", p->endpoint ? p->endpoint : "");
        if (p->host)
            fprintf(stderr, "on host %s, %s\n", p->host->name, p->log);
        else
            fprintf(stderr, "process %d, %s\n", (int)p->pid, p->log);
    }
}

static int count_left(const fl_launch *l, bool servers)
{
    int n = 0;
    for (int64_t i = 0; i < l->procs.n; i++)
        n += (!l->procs.at[i].ended || l->procs.at[i].again_at) &&
             l->procs.at[i].server == servers;
    return n;
}

/* Tell all running processes to end, and kill those that do not. */
static void stop_all(fl_launch *l)
{
    if (l->stop_at)
        return;
    l->stop_at = now_ns() + (l->hosts.n ? HOST_GRACE : GRACE) * SEC;
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_proc *p = &l->procs.at[i];
        p->stopped |= !p->ended;
        fl_proc_signal(p, SIGTERM);
    }
}

static void kill_all(fl_launch *l)
{
    for (int64_t i = 0; i < l->procs.n; i++)
        fl_proc_signal(&l->procs.at[i], SIGKILL);
}

static void on_ask(fl_launch *l, int signal)
{
    l->asks++;
    l->signal = signal;
    if (l->asks > 1 || signal != SIGINT) {
        stop_all(l);
        if (l->asks > 2)
            kill_all(l);
        return;
    }
    if (l->hosts.n)
        l->leave_at = now_ns() + HOST_LEAVE * SEC;
    fprintf(stderr,
            "launch: Ctrl-C: trainers are asked to finish their step "
            "and leave%s; Ctrl-C again stops all processes\n",
            l->hosts.n ? " within 5 s" : "");
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_proc *p = &l->procs.at[i];
        if (p->server)
            p->stopped = !p->ended; /* it may fail when the others leave */
        else
            fl_proc_signal(p, SIGINT);
    }
}

/* How many seconds servers may run after the last trainer; they may wait for a
 * trainer that never comes. */
static int patience(const fl_launch *l)
{
    bool well = false;
    for (int64_t i = 0; i < l->procs.n; i++)
        well |= !l->procs.at[i].server && !l->procs.at[i].code;
    return l->asks ? ASKED : well ? PATIENCE : LINGER;
}

/* Stop the ranks that have not ended by themselves after another one failed: a
 * rank in a long step does not notice it. */
static void judge_ranks(fl_launch *l)
{
    char name[32];
    const int64_t now = now_ns();
    if (l->first < 0)
        return;
    if (!l->failed_at)
        l->failed_at = now;
    if (now < l->failed_at + ECHO * SEC)
        return;
    fprintf(stderr,
            "launch: %s failed %d s ago; ranks that still run (%d) are "
            "stopped\n",
            fl_proc_name(&l->procs.at[l->first], name), ECHO,
            count_left(l, false));
    stop_all(l);
}

/* Say at once that a trainer has failed, since the others may go on for long.
 */
static void report_failed(fl_launch *l)
{
    char name[32], end[64];
    const fl_proc *p = l->first < 0 ? NULL : &l->procs.at[l->first];
    if (!p || p->server || p->code == FL_EXIT_ENDED || l->told || l->asks ||
        !count_left(l, false))
        return;
    l->told = true;
    fprintf(stderr,
            "launch: %s has failed after %.1f s%s: %s; its log is %s; the "
            "others go on\n",
            fl_proc_name(p, name), (double)p->lived / (double)SEC,
            fl_proc_has_completed(p) ? ", when it had completed" : "",
            fl_proc_how(p, end), p->log);
}

/* Decide whether processes must be stopped. `idle` is when the last trainer
 * ended. */
static void judge_processes(fl_launch *l, int64_t *idle)
{
    char name[32];
    const int64_t now = now_ns();
    const fl_proc *first = l->first < 0 ? NULL : &l->procs.at[l->first];
    if (l->stop_at && now >= l->stop_at)
        kill_all(l);
    if (l->leave_at && now >= l->leave_at)
        stop_all(l);
    if (l->stop_at)
        return;
    if (first && first->server && !l->failed_at)
        l->failed_at = now;
    if (first && first->server &&
        (!fl_proc_is_echo(l, first) || now >= l->failed_at + ECHO * SEC)) {
        fprintf(stderr, "launch: %s has %s; all other processes are stopped\n",
                fl_proc_name(first, name),
                fl_proc_is_echo(l, first) ? "ended because the job has"
                                          : "failed");
        stop_all(l);
        return;
    }
    if (l->opts->collective) {
        judge_ranks(l);
        return;
    }
    if (l->opts->mpi && first && !fl_proc_is_echo(l, first)) {
        fprintf(stderr, "launch: %s has failed; mpirun ends the job\n",
                fl_proc_name(first, name));
        stop_all(l);
        return;
    }
    report_failed(l);
    if (count_left(l, false) || l->opts->pod ||
        (l->nodes > 1 && !l->hosts.n)) /* other launchers */
        return;
    if (!*idle)
        *idle = now;
    if (count_left(l, true) && now >= *idle + patience(l) * SEC) {
        if (!l->asks)
            fprintf(stderr,
                    "launch: all trainers ended %d s ago; servers that still "
                    "run (%d) are stopped; if no trainer has used them, the "
                    "script has trained alone in each process\n",
                    patience(l), count_left(l, true));
        stop_all(l);
    }
}

/* The signals that the launcher waits for. */
static sigset_t our_signals(void)
{
    struct sigaction hangup;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1); /* shows all processes */
    if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
        sigaddset(&set, SIGHUP); /* nohup ignores it */
    return set;
}

/* --- restarts --- */

const char *fl_launch_level(const fl_launch *l)
{
    const char *set = fl_flag_text("FLUID_DURABILITY");
    if (l->opts->durability && *l->opts->durability)
        return l->opts->durability;
    return set ? set : l->opts->max_restarts ? "auto" : "memory";
}

static bool has_server_ended(const fl_launch *l)
{
    for (int64_t i = 0; i < l->procs.n; i++)
        if (l->procs.at[i].server && l->procs.at[i].ended &&
            !l->procs.at[i].again_at)
            return true;
    return false;
}

/* Whether servers that are started again can go on: with what they held, or
 * with a snapshot. */
static bool can_servers_go_on(const fl_launch *l)
{
    return strcmp(fl_launch_level(l), "memory") != 0 ||
           fl_flag_text("FLUID_SNAPSHOT_DIR");
}

/* Whether the host of the process is lost and will not come back. */
static bool is_host_gone(const fl_proc *p)
{
    return p->host && p->host->state == FL_HOST_LOST && !p->host->lost_at;
}

/* Whether a process that has failed may be started again. A server that exits
 * by itself knows the end of the job, and so does a trainer with
 * FL_EXIT_ENDED. A trainer that has completed would be turned away. A server
 * whose state has found no room is started again, too: then it says what is
 * lost. */
static bool may_return(const fl_launch *l, const fl_proc *p)
{
    if (l->opts->collective || l->asks || l->stop_at || p->stopped ||
        fl_proc_has_completed(p))
        return false;
    const bool again = now_ns() < p->minute + MINUTE * SEC;
    if (again && p->tries >= l->opts->max_restarts)
        return false;
    if (is_host_gone(p) || (p->lost && !p->host->lost_at) ||
        (!p->server && has_server_ended(l)))
        return false;
    const bool killed = p->signal || p->lost;
    return p->server ? killed && can_servers_go_on(l)
                     : killed || (!l->killed_only && p->code != FL_EXIT_ENDED);
}

static void plan_return(fl_launch *l, fl_proc *p)
{
    const int64_t now = now_ns();
    char name[32], end[64];
    if (now >= p->minute + MINUTE * SEC) {
        p->minute = now;
        p->tries = 0;
    }
    const int pause = p->tries < 3 ? 1 << p->tries : MAX_PAUSE;
    p->tries++;
    p->restarts++;
    p->again_at = now + pause * SEC;
    fprintf(stderr,
            "launch: %s ended after %.1f s: %s; it is started again in %d s, "
            "restart %d of at most %d in a minute; its log is %s\n",
            fl_proc_name(p, name), (double)p->lived / (double)SEC,
            fl_proc_how(p, end), pause, p->tries, l->opts->max_restarts,
            p->log);
}

/* Start a process again whose time has come. */
static fl_err start_again(fl_launch *l, fl_proc *p)
{
    p->again_at = 0;
    if (l->asks || l->stop_at || (!p->server && has_server_ended(l)))
        return FL_OK; /* it stays as it ended */
    if (is_host_gone(p))
        return FL_OK;
    if (p->host && p->host->lost_at) {
        p->again_at = now_ns() + SEC; /* as soon as its host is back */
        return FL_OK;
    }
    if (!p->host)
        fl_proc_clear_group(l, p);
    p->before.code = p->code;
    p->before.signal = p->signal;
    p->before.reached = p->reached;
    p->code = p->signal = p->reached = 0;
    p->lost = false;
    p->empty = false;
    return fl_proc_start(l, p);
}

/* Start processes again that have failed, as far as they may. */
static fl_err restart_dead(fl_launch *l)
{
    bool failed = false;
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_proc *p = &l->procs.at[i];
        if (p->again_at && (now_ns() >= p->again_at || l->asks || l->stop_at))
            FL_TRY(start_again(l, p));
        else if (!p->again_at && p->ended && p->code && may_return(l, p))
            plan_return(l, p);
        failed |= p->ended && p->code && !p->again_at && !p->stopped;
        if (l->first == i && p->again_at)
            l->first = -1;
    }
    for (int64_t i = 0; i < l->procs.n && failed && l->first < 0; i++) {
        const fl_proc *p = &l->procs.at[i];
        if (p->ended && p->code && !p->again_at && !p->stopped && !l->asks)
            l->first = (int)i;
    }
    return FL_OK;
}

static fl_err wait_all(fl_launch *l)
{
    const sigset_t set = our_signals();
    int64_t idle = 0;
    const struct timespec slice = {.tv_nsec = 100 * MS};
    while (count_left(l, true) + count_left(l, false)) {
        const int got = sigtimedwait(&set, NULL, &slice);
        if (got == SIGUSR1)
            fl_hosts_show(l);
        else if (got > 0 && got != SIGCHLD)
            on_ask(l, got);
        else if (l->opts->poll && l->opts->poll(l->opts->user))
            on_ask(l, SIGINT);
        fl_proc_reap(l);
        if (l->opts->max_restarts && !l->opts->collective)
            FL_TRY(restart_dead(l));
        fl_launch_follow(l);
        judge_processes(l, &idle);
    }
    return FL_OK;
}

/* A trainer that was killed when its script had ended has lost nothing if the
 * servers of this launcher have ended well: then it had completed. */
static void forgive_late_kills(fl_launch *l)
{
    bool well = false;
    for (int64_t i = 0; i < l->procs.n; i++)
        if (l->procs.at[i].server && l->procs.at[i].code)
            return;
    for (int64_t i = 0; i < l->procs.n; i++)
        well |= l->procs.at[i].server;
    for (int64_t i = 0; i < l->procs.n && well; i++) {
        fl_proc *p = &l->procs.at[i];
        if (p->signal && !p->stopped && (p->reached & FL_REACHED_EXIT))
            p->code = 0;
    }
    if (l->first < 0 || l->procs.at[l->first].code)
        return;
    l->first = -1;
    for (int64_t i = 0; i < l->procs.n && l->first < 0; i++)
        if (l->procs.at[i].code && !l->procs.at[i].stopped && !l->asks)
            l->first = (int)i;
}

static int exit_code(const fl_launch *l)
{
    const fl_proc *first = l->first < 0 ? NULL : &l->procs.at[l->first];
    if (first) /* the code of one that we stopped says nothing */
        return first->stopped || first->code == FL_EXIT_ENDED ? 1 : first->code;
    for (int64_t i = 0; i < l->procs.n; i++)
        if (l->procs.at[i].code && !l->procs.at[i].server && l->asks)
            return 128 + l->signal;
    return 0;
}

static void end_processes(fl_launch *l)
{
    kill_all(l);
    fl_hosts_end(l);
    for (int64_t i = 0; i < l->procs.n; i++)
        while (!l->procs.at[i].ended) {
            fl_proc_reap(l);
            usleep(1000);
        }
    fl_guard_end(l);
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_progress_free(l->procs.at[i].progress);
        fl_str_fini(&l->procs.at[i].line);
        fl_str_fini(&l->procs.at[i].last);
    }
    fl_vec_fini(&l->hosts);
    for (int64_t i = 0; i < l->held.n; i++)
        close(l->held.at[i].fd);
    fl_vec_fini(&l->held);
    fl_vec_fini(&l->procs);
    fl_vec_fini(&l->endpoints);
    fl_arena_free(l->arena);
}

/* Open stdin, stdout and stderr if they are closed, so that sockets do not get
 * their numbers. */
static void fill_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Start all ranks again, if a restart is allowed. */
static fl_err restart(fl_launch *l, bool *again)
{
    *again = l->opts->collective && l->first >= 0 && !l->asks &&
             l->restarts < l->opts->max_restarts;
    if (!*again)
        return FL_OK;
    for (int64_t i = 0; i < l->procs.n; i++)
        fl_proc_clear_group(l, &l->procs.at[i]);
    l->restarts++;
    fprintf(stderr,
            "launch: restart %d of %d: all ranks start again; a script with a "
            "CheckpointConfig goes on from its last checkpoint, any other "
            "script from its beginning\n",
            l->restarts, l->opts->max_restarts);
    l->first = l->named_by = -1;
    l->stop_at = l->failed_at = 0;
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_proc *p = &l->procs.at[i];
        *p = (fl_proc){.id = p->id,
                       .host = p->host,
                       .number = p->number,
                       .place = p->place,
                       .endpoint = p->endpoint,
                       .gpu = p->gpu,
                       .log = p->log,
                       .shown = p->shown,
                       .progress = p->progress,
                       .line = p->line,
                       .last = p->last,
                       .ended = true};
    }
    return start_all(l);
}

/* Make the job key that ranks share. Several launchers cannot share one. */
static void make_key(fl_launch *l)
{
    fl_entropy e = fl_entropy_real();
    if (l->opts->collective && !l->key &&
        (l->nodes == 1 || l->hosts.n || l->opts->mpi) &&
        !fl_flag_text("FLUID_JOB_KEY_FILE"))
        l->key = fl_arena_printf(
            l->arena, "%016llx%016llx%016llx%016llx",
            (unsigned long long)e.draw(&e), (unsigned long long)e.draw(&e),
            (unsigned long long)e.draw(&e), (unsigned long long)e.draw(&e));
}

static fl_err run_job(fl_launch *l)
{
    bool again = true;
    FL_TRY(check_opts(l->opts));
    fill_standard();
    make_argv(l);
    FL_TRY(fl_hosts_find(l));
    if (l->passive)
        return FL_OK;
    if (l->opts->mpi) {
        make_key(l);
        FL_TRY(fl_launch_join_mpi(l));
    } else if (l->hosts.n)
        FL_TRY(fl_hosts_start(l));
    else if (l->opts->pod)
        FL_TRY(fl_launch_join_pod(l));
    else
        FL_TRY(fl_launch_ports(l));
    if (!l->opts->pod)
        add_all(l);
    make_key(l);
    if (l->opts->dry_run) {
        fl_launch_show_env(l);
        return FL_OK;
    }
    const fl_err err = fl_disk_real()->mkdirs(fl_disk_real(), l->opts->log_dir);
    if (err)
        return fl_fail_at(err, "choose another folder with --log_dir");
    if (!l->hosts.n)
        FL_TRY(fl_guard_start(l));
    if (!l->opts->collective)
        FL_TRY(fl_launch_remember(l));
    FL_TRY(start_all(l));
    while (again) {
        show_plan(l);
        FL_TRY(wait_all(l));
        forgive_late_kills(l);
        fl_launch_find_cause(l);
        fl_launch_verdict(l);
        FL_TRY(restart(l, &again));
    }
    fl_pod_rest(l);
    return FL_OK;
}

static int count_gpus(const char *list)
{
    int n = 0;
    for (list += strspn(list, ", "); *list; list += strspn(list, ", ")) {
        list += strcspn(list, ", ");
        n++;
    }
    return n;
}

fl_err fl_launch_job(const fl_launch_opts *opts, int *code)
{
    fl_launch_opts o = *opts;
    if (!o.log_dir)
        o.log_dir = "logs";
    if (o.collective && o.gpus && *o.gpus)
        o.trainers = count_gpus(o.gpus);
    char own[FL_LAUNCH_ADDRESS];
    if (!o.node_ip && o.mpi)
        o.node_ip = fl_launch_own_address(own);
    if (!o.node_ip) /* a cluster of one host needs no node_ip */
        o.node_ip = o.cluster_node_ips && !strpbrk(o.cluster_node_ips, ", ")
                        ? o.cluster_node_ips
                        : "127.0.0.1";
    const bool by_default = o.max_restarts == FL_RESTARTS_DEFAULT;
    if (by_default)
        o.max_restarts = o.collective ? 0 : RESTARTS;
    fl_launch l = {.opts = &o,
                   /* If the job goes back to a snapshot, trainers end by
                    * themselves and must be started again. */
                   .killed_only =
                       by_default && !fl_flag_text("FLUID_SNAPSHOT_DIR"),
                   .arena = fl_arena_new(),
                   .first = -1,
                   .named_by = -1,
                   .guard = -1,
                   .node = -1,
                   .package = -1,
                   .began = now_ns()};
    l.mark =
        fl_arena_printf(l.arena, "%d.%lld", (int)getpid(), (long long)l.began);
    const sigset_t ours = our_signals();
    sigset_t before;
    struct sigaction plain = {.sa_handler = SIG_DFL}, was;
    sigaction(SIGCHLD, &plain, &was); /* if ignored, waitpid would fail */
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    const fl_err err = run_job(&l);
    if (!err)
        fl_statedir_sweep(l.mark); /* what killed servers have left */
    *code = err ? 1 : exit_code(&l);
    end_processes(&l);
    /* A signal that is still pending would end the caller before it can print
     * that the launch was interrupted. */
    const struct timespec at_once = {0};
    while (err == FL_EINTR && sigtimedwait(&ours, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGCHLD, &was, NULL);
    return err;
}
