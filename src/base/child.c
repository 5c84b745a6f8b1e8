/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - vfork, three pipes and a poll.
 *
 * Easy to get wrong: the end of stdout is not the end of the process, and the
 * end of the process is not the end of its pipes, which its children may hold
 * open. After the end of stdout, the process is polled with short sleeps until
 * it has ended; its stderr is complete then. Before that, its end is checked
 * every LOOK ms, because the output of a command that failed need not be read
 * to the end. */
#include "base/child.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000) /* ns */

enum {
    TAIL = 400,     /* bytes of stderr that are kept */
    LAST_LINES = 3, /* lines of them that are shown: in Python place, statement
                       and error */
    PIPE_SIZE =
        1 << 20, /* bytes that the command may write before we read them */
    NAP = 2,     /* ms between checks of a process that has closed stdout */
    LOOK = 500,  /* ms between checks of a process that writes nothing */
};

struct fl_child {
    char *command;
    pid_t pid;     /* also the number of its group; 0: it was never started */
    siginfo_t end; /* si_pid 0: it still runs */
    int out, err;  /* our ends of the pipes; -1: end of file */
    int life;      /* our end of the pipe that ends it with us */
    char tail[TAIL];
    size_t n_tail; /* bytes of stderr so far */
};

static fl_err fail_errno(const fl_child *c, const char *what, int error)
{
    return fl_fail(FL_EIO, "pipe command \"%.200s\": %s: %s", c->command, what,
                   strerror(error));
}

/* Our environment, with PYTHONHASHSEED so that all readers compute the same
 * hashes. */
static char **child_environment(void)
{
    FL_VEC(char *) env = {0};
    bool has_seed = false;
    for (char **e = environ; e && *e; e++) {
        has_seed |= fl_starts_with(*e, "PYTHONHASHSEED=");
        fl_push(&env, *e);
    }
    if (!has_seed)
        fl_push(&env, (char *)"PYTHONHASHSEED=0");
    fl_push(&env, NULL);
    return env.at;
}

/* Let the kernel kill the group when our end of the pipe is closed, which
 * happens when this process ends for any reason. */
static void tie_group(int end, pid_t group)
{
    fcntl(end, F_SETOWN, -group);
    fcntl(end, F_SETSIG, SIGKILL);
    fcntl(end, F_SETFL, O_ASYNC);
}

/* Make `to` a duplicate of `from` that stays open in the executed program. */
static bool pass_descriptor(int from, int to)
{
    return from == to ? !fcntl(to, F_SETFD, 0) : dup2(from, to) == to;
}

/* Runs in the new process, which shares our memory and has all signals blocked.
 * It is tied to us before it executes the command, and exec closes its copy of
 * our end. So it never survives us. */
static int run_command(const fl_child *c, const int fd[3], int life, char **env)
{
    char *argv[] = {(char *)"sh", (char *)"-c", c->command, NULL};
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    for (int i = 1; i <= SIGRTMAX; i++)
        sigaction(i, &usual, NULL);
    if (setpgid(0, 0))
        return errno;
    tie_group(life, getpid());
    for (int i = 0; i < 3; i++)
        if (!pass_descriptor(fd[i], i))
            return errno;
    if (!pass_descriptor(life, life) || sigprocmask(SIG_SETMASK, &none, NULL))
        return errno;
    execve("/bin/sh", argv, env);
    return errno;
}

static int spawn_command(fl_child *c, int in, int out, int err, int life)
{
    const int fd[3] = {in, out, err};
    char **env = child_environment();
    volatile int e = 0; /* the new process writes it */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = vfork();
    if (!pid) {
        e = run_command(c, fd, life, env);
        _exit(127);
    }
    if (pid < 0)
        e = errno;
    else /* the thread sanitizer's vfork is a fork, which does not wait */
        setpgid(pid, pid);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    fl_mem_free(env);
    c->pid = pid;
    if (pid > 0 && e)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    return e;
}

static void close_pipe(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool open_pipe(int *from, int *to)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC))
        return false;
    *from = fd[0];
    *to = fd[1];
    return true;
}

static fl_err start_child(fl_child *c, int in)
{
    int out = -1, err = -1, life = -1, e = 0;
    if (open_pipe(&c->out, &out) && open_pipe(&c->err, &err) &&
        open_pipe(&life, &c->life) && !fcntl(c->out, F_SETFL, O_NONBLOCK) &&
        !fcntl(c->err, F_SETFL, O_NONBLOCK)) {
        fcntl(c->out, F_SETPIPE_SZ, PIPE_SIZE); /* may be refused */
        e = spawn_command(c, in, out, err, life);
    } else {
        e = errno;
    }
    close_pipe(&out);
    close_pipe(&err);
    close_pipe(&life);
    if (e)
        c->pid = 0;
    return e ? fail_errno(c, "it cannot be started", e) : FL_OK;
}

fl_err fl_child_new(const char *command, int in, fl_child **out)
{
    fl_child *c = fl_mem_alloc(sizeof *c);
    c->command = fl_mem_strdup(command);
    c->out = c->err = c->life = -1;
    const fl_err err = start_child(c, in);
    if (err)
        fl_child_free(c);
    else
        *out = c;
    return err;
}

/* Check whether it has ended. It stays a zombie until fl_child_free, so that no
 * other process or group gets its number. */
static fl_err look_at_child(fl_child *c)
{
    if (!c->end.si_pid &&
        waitid(P_PID, (id_t)c->pid, &c->end, WEXITED | WNOHANG | WNOWAIT) &&
        errno != EINTR)
        return fail_errno(c, "its exit code cannot be known", errno);
    return FL_OK;
}

void fl_child_free(fl_child *c)
{
    if (!c)
        return;
    if (c->pid) {
        kill(-c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close_pipe(&c->out);
    close_pipe(&c->err);
    close_pipe(&c->life);
    fl_mem_free(c->command);
    fl_mem_free(c);
}

/* Read from stderr and keep the last TAIL bytes. Stops after some reads, so
 * that a flood on stderr does not keep stdout from being read. */
static void drain_stderr(fl_child *c)
{
    char buf[4096];
    for (int turn = 0; c->err >= 0 && turn < 16; turn++) {
        const ssize_t got = read(c->err, buf, sizeof buf);
        for (ssize_t i = 0; i < got; i++)
            c->tail[c->n_tail++ % TAIL] = buf[i];
        if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
            close_pipe(&c->err);
        if (got < (ssize_t)sizeof buf)
            return;
    }
}

/* Join the last lines of stderr to one line. An incomplete UTF-8 character at
 * the start is left out. */
static void last_lines(const fl_child *c, char out[TAIL + 1])
{
    const size_t n = c->n_tail < TAIL ? c->n_tail : TAIL;
    size_t from, end = n, lines = 0;
    for (size_t i = 0; i < n; i++)
        out[i] = c->tail[(c->n_tail - n + i) % TAIL];
    while (end && (unsigned char)out[end - 1] <= ' ')
        end--;
    for (from = end; from && lines < LAST_LINES; from--)
        lines += out[from - 1] == '\n';
    from += lines == LAST_LINES;
    while (from < end && (out[from] & 0xc0) == 0x80)
        from++;
    for (size_t i = from; i < end; i++)
        out[i - from] = (unsigned char)out[i] < ' ' ? ' ' : out[i];
    out[end - from] = 0;
}

static fl_err judge_end(const fl_child *c)
{
    char end[64], words[TAIL + 1];
    const bool by_itself = c->end.si_code == CLD_EXITED;
    const int code = c->end.si_status; /* or the signal */
    if (by_itself && !code)
        return FL_OK;
    if (by_itself)
        snprintf(end, sizeof end, "ended with code %d", code);
    else
        snprintf(end, sizeof end, "was ended by signal %d (%s)", code,
                 strsignal(code));
    last_lines(c, words);
    return fl_fail(FL_EIO, "pipe command \"%.200s\" %s%s%s%s", c->command, end,
                   *words ? "; its last output: "
                          : " and wrote nothing to stderr",
                   *words ? words : "",
                   by_itself && code == 127 ? " (is it installed?)" : "");
}

/* Wait until a pipe has data or has ended, for at most `most` ms. */
static fl_err wait_pipes(fl_child *c, int cancel, int64_t until, int most)
{
    struct pollfd fd[] = {
        {.fd = cancel, .events = POLLIN}, /* poll ignores descriptors below 0 */
        {.fd = c->out, .events = POLLIN},
        {.fd = c->err, .events = POLLIN},
    };
    const int64_t left = until - fl_clock_now(fl_clock_real());
    if (left <= 0)
        return fl_fail(FL_ETIMEOUT, "pipe command \"%.200s\" %s", c->command,
                       c->end.si_pid ? "has ended, but what it started keeps "
                                       "its output open and writes nothing"
                       : c->out < 0  ? "has closed its output and does not end"
                                     : "writes nothing");
    if (poll(fd, 3, left / MS < most ? (int)(left / MS) + 1 : most) < 0 &&
        errno != EINTR)
        return fail_errno(c, "its pipes cannot be watched", errno);
    if (fd[0].revents)
        return fl_fail(FL_EINTR, "pipe command \"%.200s\" was cancelled",
                       c->command);
    return FL_OK;
}

/* Wait for output. After the process has ended with code 0, its children may
 * still write. */
static fl_err wait_output(fl_child *c, int cancel, int64_t until)
{
    FL_TRY(look_at_child(c));
    if (c->end.si_pid) {
        drain_stderr(c);
        FL_TRY(judge_end(c));
    }
    return wait_pipes(c, cancel, until, LOOK);
}

/* Wait for the process after the end of its stdout. Err: its exit code is not
 * 0. */
static fl_err wait_end(fl_child *c, int cancel, int64_t until)
{
    FL_TRY(look_at_child(c));
    while (!c->end.si_pid) {
        drain_stderr(c);
        FL_TRY(wait_pipes(c, cancel, until, NAP));
        FL_TRY(look_at_child(c));
    }
    drain_stderr(c);
    return judge_end(c);
}

fl_err fl_child_read(fl_child *c, void *buf, size_t n, int cancel,
                     int64_t timeout, size_t *got)
{
    const int64_t now = fl_clock_now(fl_clock_real());
    const int64_t until = timeout < 0 ? INT64_MAX : now + timeout;
    *got = 0;
    while (c->out >= 0) {
        drain_stderr(c);
        const ssize_t r = read(c->out, buf, n);
        if (r > 0) {
            *got = (size_t)r;
            return FL_OK;
        }
        if (!r)
            close_pipe(&c->out);
        else if (errno == EAGAIN)
            FL_TRY(wait_output(c, cancel, until));
        else if (errno != EINTR)
            return fail_errno(c, "its output cannot be read", errno);
    }
    return wait_end(c, cancel, until);
}
