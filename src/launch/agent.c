/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - the processes of one host, for a launcher on another.
 *
 * `paddle launch --hosts` runs `paddle agent` over ssh. They speak in notices
 * (channel.h) on the agent's stdin and stdout:
 *
 *     launcher                    agent
 *                                 hello 1    version of Fluid
 *     workspace 0  folder                    (1: make it)
 *     tar 0        bytes                     (1: that was all)
 *     need 0       file                      it must be in the workspace
 *     run 0        program                   it must be there, or in the PATH
 *     node 0       number of the host        becomes the nodefile
 *     hold n       first port, host          keep n ports
 *                                 folder 0   the workspace, absolute
 *                                 ports 0    host:port,host:port
 *     key 0        job key
 *     tls i        PEM of certificate (0), key (1), authority (2)
 *     arg 0, env 0 one each, for the next process
 *     start i      "server 0"                process i, first of the servers
 *                                 log i      bytes
 *                                 steps i    how many it has done
 *                                 end i      code, signal
 *     signal i     number
 *     alive 0                     alive 0
 *                                 fail 0     a sentence; the agent ends
 *
 * When stdin ends, or the launcher says nothing for a minute, the agent ends
 * all processes and itself. If the agent is killed its guard does that. */
#include "launch/launch.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/flag.h"
#include "base/progress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SLICE = 50,      /* ms between two checks of processes and logs */
    BEAT = 2,        /* s between two heartbeats */
    SILENCE = 60,    /* s without a heartbeat after which the launcher is
                        considered dead */
    GRACE = 3,       /* s between SIGTERM and SIGKILL */
    QUEUE = 1 << 20, /* bytes that may be queued for sending */
};

typedef struct agent {
    fl_launch l; /* its processes, ports and guard */
    fl_launch_opts opts;
    fl_channel channel;
    FL_VEC(char *) argv, env; /* for the next process */
    int tar;                  /* pipe to tar, or -1 */
    pid_t tar_pid;
    int64_t heard, told; /* ns */
    int number;          /* number of this host in the job */
    fl_file *lock; /* lock file of the logs in the workspace; NULL: none */
    bool shared;   /* other hosts have the same workspace, as on NFS */
} agent;

static int64_t now_ns(void)
{
    return fl_clock_now(fl_clock_real());
}

/* --- the workspace --- */

static fl_err on_workspace(agent *a, const fl_notice *r)
{
    char cwd[4096];
    if (r->number)
        FL_TRY(fl_disk_real()->mkdirs(fl_disk_real(), r->body));
    if (chdir(r->body))
        return fl_fail(FL_ENOENT,
                       "workspace %s: %s; send one with "
                       "--job_dispatch_package, or name one that is there "
                       "with --job_workspace",
                       r->body, strerror(errno));
    if (getcwd(cwd, sizeof cwd))
        fl_channel_text(&a->channel, "folder", 0, cwd);
    return FL_OK;
}

static fl_err start_tar(agent *a)
{
    int ends[2];
    char *argv[] = {"tar", "-xf", "-", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    if (pipe2(ends, O_CLOEXEC))
        return fl_fail(FL_EIO, "no pipe to tar for the workspace: %s",
                       strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    posix_spawnattr_init(&attr);
    fl_proc_plain_signals(&attr, 0);
    const int why =
        posix_spawnp(&a->tar_pid, "tar", &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(ends[0]);
    a->tar = ends[1];
    if (why)
        return fl_fail(FL_EIO,
                       "tar cannot be started: %s; --job_dispatch_package "
                       "needs it on every host",
                       strerror(why));
    return FL_OK;
}

static fl_err end_tar(agent *a)
{
    int status = 0;
    close(a->tar);
    a->tar = -1;
    while (waitpid(a->tar_pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        return fl_fail(FL_EIO,
                       "the workspace cannot be unpacked: tar ended "
                       "with code %d; is the disk full?",
                       WEXITSTATUS(status));
    return FL_OK;
}

static fl_err on_tar(agent *a, const fl_notice *r)
{
    const char *at = r->body;
    if (a->tar < 0)
        FL_TRY(start_tar(a));
    for (size_t left = r->size; left;) {
        const ssize_t n = write(a->tar, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return end_tar(a);
        at += n;
        left -= (size_t)n;
    }
    return r->number ? end_tar(a) : FL_OK;
}

static fl_err on_need(agent *a, const fl_notice *r)
{
    char cwd[4096] = "";
    if (access(r->body, R_OK))
        return fl_fail(FL_ENOENT,
                       "script %s in workspace %s: %s; send its folder with "
                       "--job_dispatch_package, or name a workspace that has "
                       "it with --job_workspace",
                       r->body, getcwd(cwd, sizeof cwd) ? cwd : "?",
                       strerror(errno));
    return FL_OK;
}

/* Whether execvp would find the program. */
static bool is_program(fl_launch *l, const char *name)
{
    const char *path = fl_flag_text("PATH");
    if (strchr(name, '/'))
        return !access(name, X_OK);
    char *rest = fl_arena_strdup(l->arena, path ? path : "/bin:/usr/bin");
    for (char *dir; (dir = strsep(&rest, ":"));)
        if (!access(fl_arena_printf(l->arena, "%s/%s", *dir ? dir : ".", name),
                    X_OK))
            return true;
    return false;
}

static fl_err on_run(agent *a, const fl_notice *r)
{
    if (is_program(&a->l, r->body))
        return FL_OK;
    return fl_fail(FL_ENOENT, "it has no program %s%s", r->body,
                   r->number ? "; name the Python of the hosts with --python"
                             : "");
}

static fl_err on_node(agent *a, const fl_notice *r)
{
    a->number = atoi(r->body);
    return fl_disk_write(fl_disk_real(), "nodefile", r->body, r->size, false);
}

/* --- ports --- */

/* Whether the name is a loopback address, by which another host would reach
 * itself. */
static bool is_loopback(const char *host)
{
    const struct addrinfo like = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    bool loop = true; /* an unknown name is treated like a loopback address */
    if (getaddrinfo(host, NULL, &like, &found))
        return true;
    const void *at = found->ai_addr;
    if (found->ai_family == AF_INET)
        loop = ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 ==
               127;
    else if (found->ai_family == AF_INET6)
        loop =
            IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
    freeaddrinfo(found);
    return loop;
}

/* The address of this host for other hosts: the name that the launcher uses,
 * unless that is a loopback address; else the address at which ssh has reached
 * this host; else the first address that is not loopback. */
static const char *own_address(agent *a, const char *name)
{
    const char *ssh = fl_flag_text("SSH_CONNECTION"); /* "from port to port" */
    char to[FL_LAUNCH_ADDRESS];
    if (!is_loopback(name))
        return fl_arena_strdup(a->l.arena, name);
    if (!ssh || sscanf(ssh, "%*s %*s %63s", to) != 1 || is_loopback(to))
        fl_launch_own_address(to);
    return fl_arena_strdup(a->l.arena, is_loopback(to) ? name : to);
}

static fl_err on_hold(agent *a, const fl_notice *r)
{
    char *host;
    const long first = strtol(r->body, &host, 10);
    if (r->number < 0 || r->number > 1000 || first < 0 || first > 65535 ||
        *host != ' ')
        return fl_fail(FL_EPROTO,
                       "the launcher asks for %lld ports from \"%s\", expected "
                       "at most 1000 and \"PORT HOST\"",
                       (long long)r->number, r->body);
    fl_str ports = {0};
    a->opts.servers = (int)r->number;
    a->opts.start_port = (int)first;
    a->opts.node_ip = own_address(a, host + 1);
    if (r->number)
        FL_TRY(fl_launch_ports(&a->l));
    for (int64_t i = 0; i < a->l.endpoints.n; i++)
        fl_str_printf(&ports, "%s%s", i ? "," : "", a->l.endpoints.at[i]);
    fl_channel_text(&a->channel, "ports", 0, ports.at ? ports.at : "");
    fl_str_fini(&ports);
    return FL_OK;
}

/* --- processes --- */

static fl_err on_key(agent *a, const fl_notice *r)
{
    a->l.key = fl_arena_strdup(a->l.arena, r->body);
    return FL_OK;
}

static fl_err on_tls(agent *a, const fl_notice *r)
{
    if (r->number < 0 || r->number >= FL_TLS_FILES)
        return fl_fail(FL_EPROTO,
                       "the launcher has sent TLS file %lld, expected 0 to %d",
                       (long long)r->number, FL_TLS_FILES - 1);
    a->l.tls[r->number] = fl_arena_strdup(a->l.arena, r->body);
    return FL_OK;
}

static fl_err on_arg(agent *a, const fl_notice *r)
{
    fl_push(&a->argv, fl_arena_strdup(a->l.arena, r->body));
    return FL_OK;
}

static fl_err on_env(agent *a, const fl_notice *r)
{
    fl_push(&a->env, fl_arena_strdup(a->l.arena, r->body));
    return FL_OK;
}

static fl_proc *find_process(agent *a, int64_t number)
{
    for (int64_t i = 0; i < a->l.procs.n; i++)
        if (a->l.procs.at[i].id == number)
            return &a->l.procs.at[i];
    return NULL;
}

/* Check whether the agent of another host has its logs in the same folder. */
static fl_err claim_logs(agent *a)
{
    if (a->lock || a->shared)
        return FL_OK;
    const fl_disk *d = fl_disk_real();
    const fl_err err = d->lock(d, "log/lock", 0, &a->lock);
    a->shared = err == FL_ETIMEOUT;
    return a->shared ? FL_OK : err;
}

/* Logs have the names of Paddle's documents: those of the first server and
 * trainer of a host as they stand there. glog's names are links. */
static const char *make_log_names(agent *a, bool server, int place)
{
    char number[32] = "";
    if (a->shared)
        snprintf(number, sizeof number, ".host%d.%d", a->number, place);
    else if (place)
        snprintf(number, sizeof number, ".%d", place);
    const char *name = fl_arena_printf(a->l.arena, "%s%s.log",
                                       server ? "server" : "train", number);
    const char *link =
        fl_arena_printf(a->l.arena, "log/%s%s.INFO",
                        server ? "paddle_pserver2" : "paddle_trainer", number);
    (void)unlink(link);
    (void)!symlink(name, link);
    return fl_arena_printf(a->l.arena, "log/%s", name);
}

/* The values of the preceding notices, as a list that ends with NULL. */
static char **take_words(agent *a, char **at, int64_t n)
{
    char **words = fl_arena_alloc(a->l.arena, (size_t)(n + 1) * sizeof *words);
    for (int64_t i = 0; i < n; i++)
        words[i] = at[i];
    return words;
}

/* The process is started again, and continues its log. What it has left is
 * ended first. That may take so long that the launcher is told at once that
 * this host lives: it may start many processes again. The body of the notice
 * that is being handled is gone then. */
static void clear_process(agent *a, fl_proc *p)
{
    p->restarts++;
    fl_proc_clear_group(&a->l, p);
    fl_channel_text(&a->channel, "alive", 0, "");
    (void)!fl_channel_move(&a->channel, 0); /* serve() sees its end, too */
}

static fl_err on_start(agent *a, const fl_notice *r)
{
    char kind[16];
    int place;
    fl_proc *p = find_process(a, r->number);
    if (sscanf(r->body, "%15s %d", kind, &place) != 2 || !a->argv.n)
        return fl_fail(FL_EPROTO,
                       "the launcher asks for process \"%s\", expected a kind, "
                       "a number and a command",
                       r->body);
    FL_TRY(fl_disk_real()->mkdirs(fl_disk_real(), "log"));
    FL_TRY(claim_logs(a));
    const bool server = !strcmp(kind, "server");
    if (p)
        clear_process(a, p);
    else
        fl_push(&a->l.procs,
                ((fl_proc){.id = (int)r->number,
                           .server = server,
                           .log = make_log_names(a, server, place)}));
    p = p ? p : &a->l.procs.at[a->l.procs.n - 1];
    *p = (fl_proc){.id = p->id,
                   .server = server,
                   .log = p->log,
                   .restarts = p->restarts,
                   .shown = p->shown,
                   .progress = p->progress,
                   .ended = true};
    p->argv = take_words(a, a->argv.at, a->argv.n);
    p->env = fl_launch_env_of(&a->l, take_words(a, a->env.at, a->env.n));
    a->argv.n = a->env.n = 0;
    return fl_proc_start(&a->l, p);
}

static fl_err on_signal(agent *a, const fl_notice *r)
{
    fl_proc *p = find_process(a, r->number);
    if (p)
        fl_proc_signal(p, atoi(r->body));
    return FL_OK;
}

static fl_err on_alive(agent *a, const fl_notice *r)
{
    return FL_OK;
}

/* --- the loop --- */

static const struct {
    const char *kind;
    fl_err (*on)(agent *a, const fl_notice *r);
} handlers[] = {
    {"workspace", on_workspace},
    {"tar", on_tar},
    {"need", on_need},
    {"run", on_run},
    {"node", on_node},
    {"hold", on_hold},
    {"key", on_key},
    {"tls", on_tls},
    {"arg", on_arg},
    {"env", on_env},
    {"start", on_start},
    {"signal", on_signal},
    {"alive", on_alive},
};

static fl_err handle_notice(agent *a, const fl_notice *r)
{
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (!strcmp(handlers[i].kind, r->kind))
            return handlers[i].on(a, r);
    return fl_fail(
        FL_EPROTO,
        "the launcher has sent a notice of kind %s, which this version "
        "of Fluid does not know",
        r->kind);
}

/* Send new bytes of the log of a process. Returns true if all of them were
 * sent. */
static bool send_log(agent *a, fl_proc *p)
{
    char buf[FL_CHANNEL_CHUNK];
    ssize_t n = 0;
    const int fd = open(p->log, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fl_channel_left(&a->channel) < QUEUE &&
           (n = pread(fd, buf, sizeof buf, p->shown)) > 0) {
        fl_channel_put(&a->channel, "log", p->id, buf, (size_t)n);
        p->shown += n;
    }
    if (fd >= 0)
        close(fd);
    return fl_channel_left(&a->channel) < QUEUE;
}

/* Send a heartbeat with the progress of the processes. */
static void report_steps(agent *a)
{
    char steps[32];
    for (int64_t i = 0; i < a->l.procs.n; i++) {
        const fl_proc *p = &a->l.procs.at[i];
        if (p->reported || !p->progress)
            continue;
        snprintf(steps, sizeof steps, "%lld",
                 (long long)fl_count_get(&p->progress->steps));
        fl_channel_text(&a->channel, "steps", p->id, steps);
    }
    fl_channel_text(&a->channel, "alive", 0, "");
    a->told = now_ns();
}

static void report(agent *a)
{
    char end[48];
    fl_proc_reap(&a->l);
    for (int64_t i = 0; i < a->l.procs.n; i++) {
        fl_proc *p = &a->l.procs.at[i];
        const bool ended = p->ended; /* read before the rest of its log */
        if (p->reported || !send_log(a, p) || !ended)
            continue;
        snprintf(end, sizeof end, "%d %d %d", p->code, p->signal, p->reached);
        fl_channel_text(&a->channel, "end", p->id, end);
        p->reported = true;
    }
    if (now_ns() > a->told + BEAT * FL_SEC)
        report_steps(a);
}

static fl_err handle_all(agent *a)
{
    fl_notice r;
    bool found = true;
    while (found) {
        FL_TRY(fl_channel_take(&a->channel, &r, &found));
        if (found) {
            FL_TRY(handle_notice(a, &r));
            a->heard = now_ns(); /* handling it may have taken long */
        }
    }
    return FL_OK;
}

/* Serve the launcher until it closes the channel, which is FL_OK. */
static fl_err serve(agent *a)
{
    fl_err closed = FL_OK;
    a->heard = now_ns();
    while (!closed) {
        closed = fl_channel_move(&a->channel, SLICE);
        FL_TRY(handle_all(a));
        report(a);
        if (now_ns() > a->heard + SILENCE * FL_SEC)
            return fl_fail(FL_ETIMEOUT,
                           "the launcher has said nothing for %d s", SILENCE);
    }
    return FL_OK;
}

/* Send the error message to the launcher, if it still reads. */
static void say_failure(agent *a)
{
    const int64_t until = now_ns() + GRACE * FL_SEC;
    fl_channel_text(&a->channel, "fail", 0, fl_errmsg());
    while (fl_channel_left(&a->channel) && now_ns() < until)
        if (fl_channel_move(&a->channel, SLICE))
            return;
}

static void end_all(agent *a)
{
    fl_launch *l = &a->l;
    const int64_t until = now_ns() + GRACE * FL_SEC;
    int64_t left = 1;
    for (int64_t i = 0; i < l->procs.n; i++)
        fl_proc_signal(&l->procs.at[i], SIGTERM);
    while (left) {
        left = 0;
        fl_proc_reap(l);
        for (int64_t i = 0; i < l->procs.n; i++) {
            left += !l->procs.at[i].ended;
            if (now_ns() > until)
                fl_proc_signal(&l->procs.at[i], SIGKILL);
        }
        if (left)
            usleep(10000);
    }
    fl_guard_end(l);
}

static void free_agent(agent *a)
{
    if (a->tar >= 0)
        (void)end_tar(a);
    for (int64_t i = 0; i < a->l.held.n; i++)
        close(a->l.held.at[i].fd);
    fl_vec_fini(&a->l.held);
    fl_vec_fini(&a->l.endpoints);
    for (int64_t i = 0; i < a->l.procs.n; i++)
        fl_progress_free(a->l.procs.at[i].progress);
    fl_vec_fini(&a->l.procs);
    fl_vec_fini(&a->argv);
    fl_vec_fini(&a->env);
    fl_disk_real()->unlock(a->lock);
    fl_channel_fini(&a->channel);
    fl_arena_free(a->l.arena);
}

fl_err fl_launch_agent(int in, int out)
{
    agent a = {.tar = -1, .opts = {.log_dir = "log"}};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    a.l = (fl_launch){.opts = &a.opts,
                      .arena = fl_arena_new(),
                      .first = -1,
                      .named_by = -1,
                      .guard = -1,
                      .node = -1,
                      .package = -1,
                      .began = now_ns()};
    a.l.mark = fl_arena_printf(a.l.arena, "agent%d.%lld", (int)getpid(),
                               (long long)a.l.began);
    fl_channel_init(&a.channel, in, out);
    fl_channel_begin(&a.channel);
    fl_channel_text(&a.channel, "hello", 1, fl_version());
    sigaction(SIGPIPE, &ignore, &was); /* launcher or tar may end */
    fl_err err = fl_guard_start(&a.l);
    if (!err)
        err = serve(&a);
    if (err)
        say_failure(&a);
    end_all(&a);
    free_agent(&a);
    sigaction(SIGPIPE, &was, NULL);
    return err;
}
