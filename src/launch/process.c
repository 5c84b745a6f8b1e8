/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - starts the processes of a job and waits for their ends.
 *
 * Each process has its own process group, so that its children end with it. Its
 * environment has the job's mark, by which children that left the group are
 * found. A guard, a shell at the end of a socket, kills the processes that are
 * left when the launcher is done, and all of them if the launcher is killed. */
#include "launch/launch.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CLEAR_MS = 5000 /* for what is left of a process to end */
};

/* The guard reads lines: "+N" adds a process group, "-N" removes one that is
 * empty, because its number may be reused, and "done" ends the list. If the
 * input ends without "done", the launcher was killed. The guard searches for
 * processes twice, since a process that is about to run another program has no
 * environment for a moment. */
static const char guard_script[] =
    "all=' '\n"
    "while read -r g && [ \"$g\" != done ]; do\n"
    "  case $g in\n"
    "  +*) all=\"$all-${g#+} \" ;;\n"
    "  -*) all=\"${all%% $g *} ${all#* $g }\" ;;\n"
    "  esac\n"
    "done\n"
    "end() {\n"
    "  kill $1 $all $(grep -lszx \"FLUID_JOB=$0\" /proc/[0-9]*/environ |\n"
    "    cut -d/ -f3)\n"
    "}\n"
    "[ \"$g\" ] || { end -TERM; sleep 2; }\n"
    "end -KILL; sleep 0.1; end -KILL";

void fl_proc_plain_signals(posix_spawnattr_t *a, short flags)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(a, &none);
    posix_spawnattr_setsigdefault(a, &all);
    posix_spawnattr_setpgroup(a, 0);
    posix_spawnattr_setflags(a, flags | POSIX_SPAWN_SETSIGMASK |
                                    POSIX_SPAWN_SETSIGDEF);
}

/* Tell the guard. If the guard was killed, the launcher must not die of
 * SIGPIPE.
 */
static void tell_guard(const fl_launch *l, const char *sign, int number)
{
    char line[32];
    const int n = snprintf(line, sizeof line, "%s%d\n", sign, number);
    (void)!send(l->guard, line, (size_t)n, MSG_NOSIGNAL);
}

fl_err fl_guard_start(fl_launch *l)
{
    int ends[2];
    char *argv[] = {"sh", "-c", (char *)guard_script, l->mark, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return fl_fail(FL_EIO,
                       "launch: no socket for the process that ends a job "
                       "whose launcher is killed: %s",
                       strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    fl_proc_plain_signals(&attr, POSIX_SPAWN_SETSID);
    const int why =
        posix_spawn(&l->guard_pid, "/bin/sh", &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(ends[0]);
    l->guard = ends[1];
    if (why)
        return fl_fail(FL_EIO, "launch: /bin/sh cannot be started: %s",
                       strerror(why));
    return FL_OK;
}

void fl_guard_end(fl_launch *l)
{
    if (l->guard < 0)
        return;
    (void)!send(l->guard, "done\n", 5, MSG_NOSIGNAL);
    close(l->guard);
    l->guard = -1;
    waitpid(l->guard_pid, NULL, 0);
}

/* The log of an earlier job goes into a folder of its own, run.N, which the
 * first such log makes. */
static void keep_old_log(fl_launch *l, const char *log)
{
    if (access(log, F_OK))
        return;
    for (int i = 1; !l->old_logs; i++) {
        const char *folder =
            fl_arena_printf(l->arena, "%s/run.%d", l->opts->log_dir, i);
        if (!mkdir(folder, 0777))
            l->old_logs = folder;
        else if (errno != EEXIST)
            return; /* the log cannot be opened either, and that is reported */
    }
    (void)rename(
        log, fl_arena_printf(l->arena, "%s%s", l->old_logs, strrchr(log, '/')));
}

/* After a restart the same log is continued. */
fl_err fl_proc_open_log(fl_launch *l, const fl_proc *p, int *out)
{
    const int restarts = l->restarts + p->restarts;
    const int how = restarts ? 0 : O_TRUNC;
    if (!restarts)
        keep_old_log(l, p->log);
    *out = open(p->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | how, 0644);
    if (*out < 0)
        return fl_fail(FL_EIO,
                       "launch: log %s: %s; choose another folder with "
                       "--log_dir",
                       p->log, strerror(errno));
    if (restarts)
        dprintf(*out, "launch: restart %d\n", restarts);
    return FL_OK;
}

/* The read end of a pipe that has the key; -1: failed, and the child will
 * report that it has no key. */
static int open_key(const char *key)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    (void)!write(ends[1], key, strlen(key));
    close(ends[1]);
    return ends[0];
}

/* A file in memory that only its process can open; -1 as above. Its descriptor
 * is above those that the child will have. */
static int open_memory(const char *text)
{
    const int low = memfd_create("fluid", MFD_CLOEXEC);
    const int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FL_TLS_FD + 16);
    if (low >= 0)
        close(low);
    if (fd >= 0)
        (void)!write(fd, text, strlen(text));
    return fd;
}

/* The certificate, key and authority of a process. */
static void pass_tls(const fl_launch *l, posix_spawn_file_actions_t *files,
                     int fds[FL_TLS_FILES])
{
    for (int i = 0; i < FL_TLS_FILES; i++) {
        fds[i] = l->tls[i] ? open_memory(l->tls[i]) : -1;
        if (fds[i] >= 0)
            posix_spawn_file_actions_adddup2(files, fds[i], FL_TLS_FD + i);
    }
}

/* The file in which a process counts its steps. */
static int pass_progress(fl_proc *p, posix_spawn_file_actions_t *files)
{
    int fd;
    fl_progress_free(p->progress);
    p->progress = fl_progress_new(FL_PROGRESS_FD + 16, &fd);
    if (fd >= 0)
        posix_spawn_file_actions_adddup2(files, fd, FL_PROGRESS_FD);
    return fd;
}

/* A script is run as "python3 -u train.py". */
static fl_err fail_start(char *const *argv, int why)
{
    const char *program = argv[0];
    const bool script = argv[1] && argv[2] && fl_ends_with(argv[2], ".py");
    if (why == ENOENT && !strchr(program, '/'))
        return fl_fail(
            FL_EIO,
            "launch: %s cannot be started: it is not in "
            "PATH; name %s",
            program,
            script ? "another Python with --python or PADDLE_PYTHON"
                   : "a script that ends in .py, a program in PATH, or the "
                     "path of a program, such as ./train");
    return fl_fail(FL_EIO, "launch: %s cannot be started: %s", program,
                   strerror(why));
}

fl_err fl_proc_start(fl_launch *l, fl_proc *p)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    char **argv = p->argv ? p->argv : l->argv;
    int log, key = -1, tls[FL_TLS_FILES];
    if (p->host)
        return fl_host_run(l, p);
    FL_TRY(fl_proc_open_log(l, p, &log));
    if (l->key)
        key = open_key(l->key);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, log, 1);
    posix_spawn_file_actions_adddup2(&files, log, 2);
    if (key >= 0)
        posix_spawn_file_actions_adddup2(&files, key, FL_KEY_FD);
    pass_tls(l, &files, tls);
    const int progress = pass_progress(p, &files);
    posix_spawnattr_init(&attr);
    fl_proc_plain_signals(&attr, POSIX_SPAWN_SETPGROUP);
    const int why = posix_spawnp(&p->pid, argv[0], &files, &attr, argv,
                                 p->env ? p->env : fl_launch_env(l, p));
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(log);
    if (key >= 0)
        close(key);
    if (progress >= 0)
        close(progress);
    for (int i = 0; i < FL_TLS_FILES; i++)
        if (tls[i] >= 0)
            close(tls[i]);
    if (why)
        return fail_start(argv, why);
    p->ended = false;
    p->began = fl_clock_now(fl_clock_real());
    tell_guard(l, "+", (int)p->pid);
    return FL_OK;
}

/* Tell the guard that a group is empty. The system does not reuse the number of
 * a group that has members. */
static void forget_empty_group(const fl_launch *l, fl_proc *p)
{
    if (!p->ended || p->empty || !p->pid || !kill(-p->pid, 0) || errno != ESRCH)
        return;
    p->empty = true;
    tell_guard(l, "-", (int)p->pid);
}

/* The ends of other processes are not taken note of here: the caller has
 * perhaps looked at them already. */
void fl_proc_clear_group(const fl_launch *l, fl_proc *p)
{
    for (int ms = 0; p->pid && !p->empty && ms < CLEAR_MS; ms += 10) {
        kill(-p->pid, SIGKILL);
        usleep(10000);
        forget_empty_group(l, p);
    }
}

/* Whether the process was told to end. A rank that leaves may fail others in
 * the middle of a step. Python that is interrupted before its script begins
 * exits with 1. */
static bool was_asked(const fl_launch *l, const fl_proc *p)
{
    return l->asks && (l->opts->collective || p->code == 128 + SIGINT ||
                       (p->code == 1 && fl_proc_says_interrupt(p)));
}

int fl_exit_code(fl_err err)
{
    const char *launched = fl_flag_text("FLUID_LAUNCHED");
    if (launched && !strcmp(launched, "1") && err == FL_EENDED)
        return FL_EXIT_ENDED;
    if (launched && !strcmp(launched, "1") && err == FL_EDONE)
        return FL_EXIT_DONE;
    return err != FL_OK;
}

void fl_exit_begin(void)
{
    fl_progress_reach(FL_REACHED_EXIT);
}

/* Such a process may end before the one that is the cause. A rank in a call
 * that another rank left raises an exception, after which Python exits with 1.
 */
bool fl_proc_is_echo(const fl_launch *l, const fl_proc *p)
{
    return p->code == FL_EXIT_ENDED || (l->opts->collective && p->code == 1);
}

/* A trainer that is started again after it has completed ends at once with
 * FL_EXIT_DONE: then the end of the process before it counts. If there was none
 * under this launcher, such as in a new pod, the end of the job counts, and the
 * trainer has ended well. A kill after the end of its script loses nothing if
 * the trainer had completed; nor does a kill of a server whose job had ended.
 */
static void settle_end(fl_proc *p)
{
    const int all = p->server ? FL_REACHED_COMPLETION
                              : FL_REACHED_COMPLETION | FL_REACHED_EXIT;
    char name[32], end[64];
    if (p->code == FL_EXIT_DONE) {
        p->code = p->before.code;
        p->signal = p->before.signal;
        p->reached = p->before.reached | FL_REACHED_COMPLETION;
    }
    if (!p->signal || (p->reached & all) != all)
        return;
    p->code = 0;
    fprintf(stderr, "launch: %s was killed when %s, so nothing is lost: %s\n",
            fl_proc_name(p, name),
            p->server ? "its job had ended"
                      : "it had completed and its script had ended",
            fl_proc_how(p, end));
}

bool fl_proc_has_completed(const fl_proc *p)
{
    return p->ended && p->code && (p->reached & FL_REACHED_COMPLETION);
}

/* Of processes that ended because the job did a server goes first: without it
 * the others must end. An agent leaves the verdict to the launcher. */
void fl_proc_note_end(fl_launch *l, fl_proc *p, int code, int signal,
                      int reached)
{
    p->ended = true;
    p->lived = fl_clock_now(fl_clock_real()) - p->began;
    p->signal = signal;
    p->code = code;
    p->reached = reached;
    if (!p->argv)
        settle_end(p);
    const fl_proc *first = l->first < 0 ? NULL : &l->procs.at[l->first];
    if (p->code && !p->stopped && !was_asked(l, p) &&
        (!first || (fl_proc_is_echo(l, first) &&
                    (!fl_proc_is_echo(l, p) || p->server > first->server))))
        l->first = (int)(p - l->procs.at);
}

void fl_proc_reap(fl_launch *l)
{
    fl_hosts_hear(l);
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_proc *p = &l->procs.at[i];
        int status;
        if (p->host)
            continue;
        forget_empty_group(l, p);
        if (p->ended || waitpid(p->pid, &status, WNOHANG) != p->pid)
            continue;
        const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        fl_proc_note_end(
            l, p, signal ? 128 + signal : WEXITSTATUS(status), signal,
            p->progress ? (int)fl_count_get(&p->progress->reached) : 0);
        forget_empty_group(l, p);
    }
}

void fl_proc_signal(fl_proc *p, int signal)
{
    if (p->host)
        fl_host_signal(p, signal);
    else if (!p->ended) /* pid 0 would signal the launcher itself */
        kill(-p->pid, signal);
}
