/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c - the processes of a job on other hosts.
 *
 * For each host an ssh, or an srun of Slurm, runs `paddle agent` there (agent.c
 * has the notices that pass between us). What an agent reports becomes the
 * state of our fl_procs, so that launch.c judges a job of many hosts as one of
 * a single host. Logs come here as well: into the files of --log_dir, and line
 * by line to stderr.
 *
 *     called --hello--> asked --ports--> ready
 *        |                |                |
 *        +----------------+--> refused     +--> lost --> called
 *
 * A host that was ready and is lost is called again while processes may be
 * started again: it must give the same ports, since all others know them.
 *
 * Easy to get wrong: ssh must not hear the Ctrl-C of the terminal, or the
 * agents would go before their processes could leave. */
#include "launch/launch.h"

#include "base/certs.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/endpoint.h"
#include "base/flag.h"
#include "base/random.h"
#include "protocol/job.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

enum {
    MOST_HOSTS = 1000,
    HELLO = 30,   /* s in which an agent must answer */
    PATIENCE = 5, /* s between two messages about silent hosts */
    BEAT = 2,     /* s between two heartbeats */
    SILENCE = 15, /* s without a heartbeat after which the host is lost */
    REJOIN = 60,  /* s that a lost host may take to come back */
    RECALL = 2,   /* s between two attempts to reach a lost host, at most */
    END = 8,      /* s for agents to end their processes and themselves */
    SLICE = 20,   /* ms */
    SAID = 2000,  /* bytes of the output of ssh that are kept */
    LINE = 4000,  /* bytes of a line that are shown */
    VIEW = 60,    /* s between two views of all processes */
    GLANCE = 100, /* bytes of the last log line of each process in that view */
    SHOWN = 10,   /* unusable hosts that are named at most */
    HOSTFILE = 1 << 20,
    CERTIFICATE_DAYS = 3650, /* longer than any job */
    QUEUE = 1 << 18,         /* bytes of the package that wait to be sent */
    FIRST_PORT = 6170,       /* of a dry run */
    LOST_CODE = 255,         /* exit code of ssh if the connection broke */
    NOT_FOUND = 127          /* exit code of a shell if a command is missing */
};

#define NO_PADDLE                                                              \
    "install Fluid on %s, or say with --remote_paddle where the paddle "       \
    "command is"

static int64_t now_ns(void)
{
    return fl_clock_now(fl_clock_real());
}

/* --- which hosts --- */

/* "[::1]" and "node" of "user@[::1]:22" and "node". */
static const char *host_of(fl_launch *l, const char *name)
{
    const char *at = strrchr(name, '@'), *from = at ? at + 1 : name;
    const char *end = *from == '[' ? strchr(from, ']') : NULL;
    if (end)
        return fl_arena_printf(l->arena, "%.*s", (int)(end - from - 1),
                               from + 1);
    return fl_arena_printf(l->arena, "%.*s", (int)strcspn(from, ":"), from);
}

/* Whether a port could not be told from the end of an address. */
static bool has_bare_ipv6(const char *name)
{
    const char *at = strrchr(name, '@'), *from = at ? at + 1 : name;
    const char *end = *from == '[' ? strchr(from, ']') : NULL;
    const char *colon = strchr(end ? end : from, ':');
    return (*from == '[' && !end) || (colon && strchr(colon + 1, ':'));
}

static fl_err add_host(fl_launch *l, const char *name)
{
    if (*name == '-')
        return fl_fail(FL_EINVAL,
                       "launch: host \"%s\" begins with a dash, expected host, "
                       "user@host or user@host:port",
                       name);
    if (!*host_of(l, name) || has_bare_ipv6(name))
        return fl_fail(FL_EINVAL,
                       "launch: host \"%s\" is not host, user@host or "
                       "user@host:port; an address of IPv6 is in brackets: "
                       "[::1]",
                       name);
    for (int64_t i = 0; i < l->hosts.n; i++)
        if (!strcmp(l->hosts.at[i].name, name))
            return fl_fail(FL_EINVAL,
                           "launch: host %s is named twice; --worker_num and "
                           "--server_num say how many processes each has",
                           name);
    if (l->hosts.n == MOST_HOSTS)
        return fl_fail(FL_EINVAL,
                       "launch: %s is host %d of the list, a job has at most "
                       "%d hosts",
                       name, MOST_HOSTS + 1, MOST_HOSTS);
    const fl_host h = {.name = name,
                       .host = host_of(l, name),
                       .number = (int)l->hosts.n,
                       .channel = {.in = -1, .out = -1},
                       .errors = -1};
    fl_push(&l->hosts, h);
    return FL_OK;
}

/* Split --ssh as a shell does: what is in quotes is one word, and variables
 * have their values. */
static fl_err split_start(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const char *start = o->ssh ? o->ssh : o->slurm ? "srun" : "ssh";
    wordexp_t words = {0};
    const int failed = wordexp(start, &words, WRDE_NOCMD | WRDE_UNDEF);
    if (failed == WRDE_NOSPACE)
        return fl_fail(FL_ENOMEM, "launch: no memory for --ssh");
    if (failed || !words.we_wordc) {
        if (!failed)
            wordfree(&words);
        return fl_fail(FL_EINVAL,
                       "launch: --ssh is \"%s\", expected a command and its "
                       "flags, with quotes as in a shell: \"ssh -i 'my key'\"",
                       start);
    }
    l->start = fl_arena_alloc(l->arena, (words.we_wordc + 1) * sizeof(char *));
    for (size_t i = 0; i < words.we_wordc; i++)
        l->start[i] = fl_arena_strdup(l->arena, words.we_wordv[i]);
    l->start[words.we_wordc] = NULL;
    wordfree(&words);
    return FL_OK;
}

fl_err fl_hosts_find(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const char *hosts = o->hosts;
    if (o->slurm)
        FL_TRY(fl_slurm_hosts(l, &hosts, &l->passive));
    if (!hosts)
        return FL_OK;
    if (o->cluster_node_ips || (o->endpoints && *o->endpoints))
        return fl_fail(FL_EINVAL,
                       "launch: --%s starts the processes of all hosts; leave "
                       "out --%s, which is for a launcher on each host",
                       o->slurm ? "slurm" : "hosts",
                       o->cluster_node_ips ? "cluster_node_ips" : "endpoints");
    char *rest = fl_arena_strdup(l->arena, hosts);
    for (char *name; (name = strtok_r(rest, ", \t\n", &rest));)
        FL_TRY(add_host(l, name));
    if (!l->hosts.n)
        return fl_fail(FL_EINVAL, "launch: --hosts \"%s\" names no host",
                       o->hosts);
    l->nodes = (int)l->hosts.n;
    return split_start(l);
}

/* The texts of a list of Python, with commas between them. Comments and texts
 * may have brackets. */
static fl_err read_python_list(const char *path, const char *at, fl_str *out)
{
    at += strcspn(at, "[\n");
    at += *at == '[';
    while (*at && *at != ']') {
        const char *close =
            *at == '"' || *at == '\'' ? strchr(at + 1, *at) : NULL;
        if (*at == '#')
            at += strcspn(at, "\n");
        else if (!close && !strchr(" \t\r\n,", *at))
            break;
        if (close)
            fl_str_printf(out, "%s%.*s", out->n ? "," : "",
                          (int)(close - at - 1), at + 1);
        at = close ? close + 1 : at + (*at != 0);
    }
    return *at == ']' ? FL_OK
                      : fl_fail(FL_EINVAL,
                                "%s: HOSTS is not a list of texts: "
                                "[\"host\", ...]",
                                path);
}

/* The first word of each line; '#' begins a comment. */
static void read_lines(const char *at, fl_str *out)
{
    while (*at) {
        at += strspn(at, " \t\r");
        const size_t n = strcspn(at, " \t\r\n#");
        if (n)
            fl_str_printf(out, "%s%.*s", out->n ? "," : "", (int)n, at);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
}

/* Where "HOSTS =" begins a line; NULL: nowhere. */
static const char *find_python_list(const char *text)
{
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (fl_starts_with(at, "HOSTS") && at[5 + strspn(at + 5, " \t")] == '=')
            return at;
    }
    return NULL;
}

fl_err fl_launch_hosts_read(const char *path, char **hosts)
{
    fl_str text = {0}, out = {0};
    FL_TRY(fl_disk_real()->read(fl_disk_real(), path, HOSTFILE, &text));
    const char *list = text.at ? find_python_list(text.at) : NULL;
    fl_err err = FL_OK;
    if (list)
        err = read_python_list(path, list, &out);
    else if (text.at)
        read_lines(text.at, &out);
    if (!err && !out.n)
        err = fl_fail(FL_EINVAL, "%s names no host", path);
    if (!err)
        *hosts = fl_str_take(&out);
    fl_str_fini(&out);
    fl_str_fini(&text);
    return err;
}

/* --- ssh --- */

const char *fl_launch_quoted(fl_launch *l, const char *word)
{
    fl_str s = {0};
    fl_str_add(&s, "'");
    for (; *word; word++)
        if (*word == '\'')
            fl_str_add(&s, "'\\''");
        else
            fl_str_bytes(&s, word, 1);
    fl_str_add(&s, "'");
    const char *text = fl_arena_strdup(l->arena, s.at);
    fl_str_fini(&s);
    return text;
}

/* `paddle` there: at the same path as here, else in the PATH. */
static const char *remote_command(fl_launch *l)
{
    char self[4096];
    const char *named = l->opts->remote_paddle;
    if (named)
        return fl_arena_printf(l->arena, "exec %s agent",
                               fl_launch_quoted(l, named));
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (!fl_ends_with(self, "/paddle"))
        return "exec paddle agent";
    return fl_arena_printf(l->arena,
                           "exec sh -c 'test -x \"$0\" || exec paddle agent; "
                           "exec \"$0\" agent' %s",
                           fl_launch_quoted(l, self));
}

typedef FL_VEC(char *) word_list;

static void add_words(word_list *words, const char *const *more)
{
    for (; *more; more++)
        fl_push(words, (char *)*more);
}

/* The rest of the command after "srun". The steps of a job share its CPUs. */
static void add_srun(fl_launch *l, const fl_host *h, word_list *words)
{
    add_words(words, (const char *[]){"--overlap", "--nodes=1", "--ntasks=1",
                                      "--quiet", "--unbuffered", "--mpi=none",
                                      "--cpu-bind=none", "--mem=0", NULL});
    add_words(words, (const char *[]){
                         fl_arena_printf(l->arena, "--nodelist=%s", h->host),
                         "sh", "-c", remote_command(l), NULL});
}

/* "2222" of "user@host:2222"; NULL: there is none. */
static const char *port_of(const fl_host *h)
{
    const char *colon = strrchr(h->name, ':');
    return colon && (!strchr(h->name, ']') || colon[-1] == ']') ? colon + 1
                                                                : NULL;
}

/* "user@host" of "user@host:2222". */
static const char *login_of(fl_launch *l, const fl_host *h)
{
    const char *at = strrchr(h->name, '@');
    return at ? fl_arena_printf(l->arena, "%.*s@%s", (int)(at - h->name),
                                h->name, h->host)
              : h->host;
}

/* The rest of the command after "ssh" and the user's own flags: ssh keeps the
 * first value that it sees. */
static void add_ssh(fl_launch *l, const fl_host *h, word_list *words)
{
    add_words(words,
              (const char *[]){"-T", "-x", "-a", "-oBatchMode=yes",
                               "-oConnectTimeout=10", "-oServerAliveInterval=5",
                               "-oControlPath=none", NULL});
    const char *port = port_of(h);
    if (port)
        add_words(words, (const char *[]){"-p", port, NULL});
    add_words(words, (const char *[]){login_of(l, h), remote_command(l), NULL});
}

/* "-p 2222 user@host", as ssh and ssh-copy-id understand it. */
static const char *target_of(fl_launch *l, const fl_host *h)
{
    const char *port = port_of(h);
    return port ? fl_arena_printf(l->arena, "-p %s %s", port, login_of(l, h))
                : login_of(l, h);
}

/* The command by which a user can test a host: "ssh host". */
static const char *way_to(fl_launch *l, const fl_host *h)
{
    return l->opts->slurm
               ? fl_arena_printf(l->arena, "srun -w %s", h->name)
               : fl_arena_printf(l->arena, "ssh %s", target_of(l, h));
}

char **fl_host_command(fl_launch *l, const fl_host *h)
{
    word_list words = {0};
    add_words(&words, (const char *const *)l->start);
    if (l->opts->slurm)
        add_srun(l, h, &words);
    else
        add_ssh(l, h, &words);
    fl_push(&words, NULL);
    char **out =
        fl_arena_dup(l->arena, words.at, (size_t)words.n * sizeof *words.at);
    fl_vec_fini(&words);
    return out;
}

static fl_err start_ssh(fl_launch *l, fl_host *h)
{
    int ends[2], errors[2];
    char **argv = fl_host_command(l, h);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    if (!fl_channel_pipes(ends, errors))
        return fl_fail(FL_EIO,
                       "launch: no socket for host %s: %s; each host needs "
                       "two open files, raise ulimit -n",
                       h->name, strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], 0);
    posix_spawn_file_actions_adddup2(&files, ends[0], 1);
    posix_spawn_file_actions_adddup2(&files, errors[1], 2);
    posix_spawnattr_init(&attr);
    fl_proc_plain_signals(&attr, POSIX_SPAWN_SETPGROUP);
    const int why =
        posix_spawnp(&h->pid, argv[0], &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(ends[0]);
    close(errors[1]);
    fl_channel_init(&h->channel, ends[1], ends[1]);
    h->errors = errors[0];
    h->heard = now_ns();
    if (why) {
        h->pid = 0;
        return fl_fail(
            FL_EIO, "launch: %s cannot be started: %s; --%s needs it", argv[0],
            strerror(why), l->opts->slurm ? "slurm" : "hosts");
    }
    return FL_OK;
}

/* Keep the end of the output of ssh. */
static void read_errors(fl_host *h)
{
    char buf[1024];
    ssize_t n;
    while (h->errors >= 0 && (n = read(h->errors, buf, sizeof buf)) > 0) {
        fl_str_bytes(&h->said, buf, (size_t)n);
        if (h->said.n > 2 * SAID) {
            memmove(h->said.at, h->said.at + h->said.n - SAID, SAID + 1);
            h->said.n = SAID;
        }
    }
}

/* The last line of the output of ssh, without its line end. */
static const char *last_line(fl_launch *l, const fl_host *h)
{
    const char *at = h->said.at ? h->said.at : "";
    size_t end = strlen(at), from;
    while (end && isspace((unsigned char)at[end - 1]))
        end--;
    for (from = end; from && at[from - 1] != '\n'; from--)
        ;
    return fl_arena_printf(l->arena, "%.*s", (int)(end - from), at + from);
}

/* Advice for an error message of ssh, in the arena; NULL: there is none. */
static const char *advise(fl_launch *l, const fl_host *h, const char *said)
{
    static const struct {
        const char *said, *advice; /* %s is the host */
        bool is_command;           /* the host as words of a command */
    } all[] = {
        {"Permission denied",
         "ssh must get there without a password: ssh-copy-id %s", true},
        {"Host key verification failed",
         "its key is not known here: look at it once with ssh %s true", true},
        {"resolve hostname", "is %s the right name, and known to this host?"},
        {"refused", "does sshd run on %s?"},
        {"timed out", "is %s up, and does a firewall let ssh through?"},
        {"No route", "is %s up, and in the same network?"},
        {"not found", NO_PADDLE},
        {"No such file", NO_PADDLE},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strstr(said, all[i].said))
            return fl_arena_printf(l->arena, all[i].advice,
                                   all[i].is_command ? target_of(l, h)
                                                     : h->name);
    return NULL;
}

/* --- a host that cannot be used, or no longer --- */

static void end_channel(fl_host *h)
{
    fl_channel_fini(&h->channel);
    if (h->errors >= 0)
        close(h->errors);
    h->errors = -1;
    if (!h->pid)
        return;
    kill(-h->pid, SIGKILL);
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    h->pid = 0;
}

/* Mark the processes of a host as unreachable. */
static void lose_processes(fl_launch *l, fl_host *h)
{
    for (int64_t i = 0; i < l->procs.n; i++) {
        fl_proc *p = &l->procs.at[i];
        if (p->host != h || p->ended)
            continue;
        p->lost = true;
        fl_proc_note_end(l, p, LOST_CODE, 0, 0);
    }
}

/* ns that a lost host may take to come back. */
static int64_t rejoin_limit(void)
{
    fl_job job = {0};
    (void)!fl_job_limits(&job); /* the launcher has checked them */
    return job.rejoin < 0 ? 0 : job.rejoin ? job.rejoin : REJOIN * FL_SEC;
}

/* Time without a heartbeat, in ns, after which a host that prepares its
 * workspace is given up. Its agent sends none while it waits for a disk, a name
 * server or tar. */
static int64_t prepare_limit(const fl_host *h)
{
    fl_job job = {0};
    if (h->lost_at)
        return rejoin_limit();
    (void)!fl_job_limits(&job); /* the launcher has checked them */
    return fl_job_defaults(job).start;
}

/* ns until a lost host is called (again): at least once within its limit. */
static int64_t recall_pause(void)
{
    const int64_t half = rejoin_limit() / 2;
    return half < RECALL * FL_SEC ? half : RECALL * FL_SEC;
}

static bool may_rejoin(const fl_launch *l)
{
    return l->opts->max_restarts && !l->opts->collective && !l->asks &&
           !l->stop_at && rejoin_limit();
}

static void lose_host(fl_launch *l, fl_host *h)
{
    h->state = FL_HOST_LOST;
    fprintf(stderr, "launch: host %s is lost: %s", h->name, h->why);
    if (may_rejoin(l)) {
        h->lost_at = now_ns();
        fprintf(stderr, "; the launcher tries to reach it for %g s",
                (double)rejoin_limit() / (double)FL_SEC);
    }
    fputc('\n', stderr);
    lose_processes(l, h);
}

static void give_up(fl_launch *l, fl_host *h, const char *why)
{
    h->why = why;
    if (h->state == FL_HOST_READY)
        lose_host(l, h);
    else
        h->state = h->lost_at ? FL_HOST_LOST : FL_HOST_REFUSED;
    h->call_at = now_ns() + recall_pause();
    end_channel(h);
}

/* The ssh of a host has ended or is about to end. Its output and exit code give
 * the reason. */
static void on_closed(fl_launch *l, fl_host *h)
{
    int status = 0;
    const int64_t until = now_ns() + FL_SEC;
    pid_t got;
    while (!(got = waitpid(h->pid, &status, WNOHANG)) && now_ns() < until)
        usleep(1000);
    read_errors(h);
    const char *said = last_line(l, h);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (got == h->pid)
        h->pid = 0;
    fl_str why = {0};
    if (h->state == FL_HOST_READY)
        fl_str_printf(&why, "the connection has ended%s%s", *said ? ": " : "",
                      said);
    else if (*said && advise(l, h, said))
        fl_str_printf(&why, "%s; %s", said, advise(l, h, said));
    else if (*said)
        fl_str_printf(&why, "%s; try it by hand: %s paddle version", said,
                      way_to(l, h));
    else if (code == NOT_FOUND)
        fl_str_printf(&why, NO_PADDLE, h->name);
    else
        fl_str_printf(&why, "%s ended with code %d and said nothing",
                      way_to(l, h), code);
    give_up(l, h, fl_arena_strdup(l->arena, why.at));
    fl_str_fini(&why);
}

/* --- what an agent is told before it starts anything --- */

static void put_number(fl_host *h, const char *kind, int64_t number, int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    fl_channel_text(&h->channel, kind, number, text);
}

static int first_port(const char *endpoints)
{
    fl_endpoint e;
    char *first = fl_mem_strdup(endpoints);
    first[strcspn(first, ",")] = 0;
    const int port = fl_endpoint_read(first, "", &e) ? 0 : e.port;
    fl_mem_free(first);
    return port;
}

/* Of the files only the script is looked for on the host. */
static void ask_rest(fl_launch *l, fl_host *h)
{
    const fl_launch_opts *o = l->opts;
    char first[16];
    const bool script = fl_ends_with(o->command[0], ".py");
    if (script)
        fl_channel_text(&h->channel, "need", 0, o->command[0]);
    fl_channel_text(&h->channel, "run", script, l->argv[0]);
    put_number(h, "node", 0, h->number);
    snprintf(first, sizeof first, "%d ",
             h->ports && *h->ports ? first_port(h->ports) : o->start_port);
    fl_channel_text(&h->channel, "hold",
                    o->collective ? o->trainers : o->servers,
                    fl_arena_printf(l->arena, "%s%s", first, h->host));
    h->package_sent = true;
}

/* Send as much of the package as may be queued. */
static void send_package(fl_launch *l, fl_host *h)
{
    char buf[FL_CHANNEL_CHUNK];
    while (h->state == FL_HOST_ASKED && !h->package_sent &&
           fl_channel_left(&h->channel) < QUEUE) {
        const ssize_t n =
            l->package < 0 ? 0 : pread(l->package, buf, sizeof buf, h->sent);
        if (n > 0)
            fl_channel_put(&h->channel, "tar", 0, buf, (size_t)n);
        else if (l->package >= 0)
            fl_channel_text(&h->channel, "tar", 1, "");
        if (n > 0)
            h->sent += n;
        else
            ask_rest(l, h);
    }
}

/* "ROOT/JOB20180102030405.1c0ffee1" for a package without a workspace. */
static const char *workspace_of(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    char cwd[4096];
    if (o->workspace)
        return o->workspace;
    if (o->package)
        return fl_arena_printf(l->arena, "%s%sJOB%s",
                               o->workspace_root ? o->workspace_root : "",
                               o->workspace_root ? "/" : "", l->stamp);
    return fl_arena_strdup(l->arena, getcwd(cwd, sizeof cwd) ? cwd : ".");
}

static void on_hello(fl_launch *l, fl_host *h, const char *version)
{
    if (strcmp(version, fl_version())) {
        give_up(l, h,
                fl_arena_printf(l->arena,
                                "it has Fluid %s, this host has %s; install "
                                "the same version on all hosts",
                                version, fl_version()));
        return;
    }
    h->state = FL_HOST_ASKED;
    fl_channel_text(&h->channel, "workspace", l->opts->package != NULL,
                    workspace_of(l));
}

/* --- what an agent says --- */

/* Of a progress bar that is redrawn, show only the last state. */
static void show_line(const fl_launch *l, fl_proc *p)
{
    char name[32];
    const char *at = p->line.at, *bar = strrchr(at, '\r');
    if (bar && bar[1])
        at = bar + 1;
    if (!l->opts->quiet)
        fprintf(stderr, "[%s] %s\n", fl_proc_name(p, name), at);
    p->last.n = 0;
    fl_str_add(&p->last, at);
    p->line.n = 0;
    *p->line.at = 0;
}

/* Write the log of a process to its file, and line by line to the terminal. */
static void on_log(fl_launch *l, fl_proc *p, const fl_notice *r)
{
    const int fd = open(p->log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, r->body, r->size);
        close(fd);
    }
    const char *at = r->body, *end = at + r->size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        fl_str_bytes(&p->line, at, (size_t)((stop ? stop : end) - at));
        if (stop || p->line.n > LINE)
            show_line(l, p);
        at = stop ? stop + 1 : end;
    }
}

static void on_end(fl_launch *l, fl_proc *p, const fl_notice *r)
{
    int code = 0, signal = 0, reached = 0;
    if (sscanf(r->body, "%d %d %d", &code, &signal, &reached) == 3 && !p->ended)
        fl_proc_note_end(l, p, code, signal, reached);
    if (p->line.n)
        show_line(l, p);
}

/* The speed is computed since the last report. A process that was started again
 * counts from 0. */
static void on_steps(fl_proc *p, const char *text)
{
    const int64_t steps = strtoll(text, NULL, 10), now = now_ns();
    const double seconds = (double)(now - p->steps_at) / (double)FL_SEC;
    p->speed = p->steps_at && steps > p->steps && seconds > 0
                   ? (double)(steps - p->steps) / seconds
                   : 0;
    p->steps = steps;
    p->steps_at = now;
}

/* A host holds all its ports. A host that is back must hold the same ports as
 * before. */
static void on_ports(fl_launch *l, fl_host *h, const char *ports)
{
    if (h->lost_at && strcmp(ports, h->ports)) {
        give_up(l, h,
                fl_arena_printf(l->arena, "its ports are %s now, and were %s",
                                ports, h->ports));
        return;
    }
    if (h->lost_at)
        fprintf(stderr, "launch: host %s is back after %.1f s\n", h->name,
                (double)(now_ns() - h->lost_at) / (double)FL_SEC);
    h->ports = fl_arena_strdup(l->arena, ports);
    h->lost_at = 0;
    h->state = FL_HOST_READY;
}

/* Our sentence has "launch: " already. */
static void on_fail(fl_launch *l, fl_host *h, const char *why)
{
    const size_t skip =
        fl_starts_with(why, "launch: ") ? strlen("launch: ") : 0;
    give_up(l, h, fl_arena_strdup(l->arena, why + skip));
}

static void on_notice(fl_launch *l, fl_host *h, const fl_notice *r)
{
    fl_proc *p = r->number >= 0 && r->number < l->procs.n
                     ? &l->procs.at[r->number]
                     : NULL;
    if (p && p->host != h)
        p = NULL;
    h->heard = now_ns();
    if (!strcmp(r->kind, "hello") && h->state == FL_HOST_CALLED)
        on_hello(l, h, r->body);
    else if (!strcmp(r->kind, "folder"))
        h->folder = fl_arena_strdup(l->arena, r->body);
    else if (!strcmp(r->kind, "ports") && h->state == FL_HOST_ASKED)
        on_ports(l, h, r->body);
    else if (!strcmp(r->kind, "log") && p)
        on_log(l, p, r);
    else if (!strcmp(r->kind, "steps") && p)
        on_steps(p, r->body);
    else if (!strcmp(r->kind, "end") && p)
        on_end(l, p, r);
    else if (!strcmp(r->kind, "fail"))
        on_fail(l, h, r->body);
}

static bool is_gone(const fl_host *h)
{
    return h->state >= FL_HOST_REFUSED;
}

/* Skip the output of login scripts. Returns false if there is no agent yet. */
static bool find_hello(fl_launch *l, fl_host *h)
{
    if (fl_channel_skip_to(&h->channel, "hello"))
        return true;
    if (h->channel.got.n > FL_NOTICE_BYTES)
        give_up(l, h,
                fl_arena_printf(l->arena,
                                "more than %d bytes came, but no agent has "
                                "answered; what does a login script print "
                                "there? Try it by hand: %s true",
                                FL_NOTICE_BYTES, way_to(l, h)));
    return false;
}

static void take_notices(fl_launch *l, fl_host *h)
{
    fl_notice r;
    bool found = true;
    if (h->state == FL_HOST_CALLED && !find_hello(l, h))
        return;
    while (found && !is_gone(h)) {
        if (fl_channel_take(&h->channel, &r, &found))
            give_up(l, h, fl_arena_strdup(l->arena, fl_errmsg()));
        else if (found)
            on_notice(l, h, &r);
    }
}

/* Try to reach a lost host again until its time limit. */
static void call_again(fl_launch *l, fl_host *h)
{
    const int64_t now = now_ns();
    if (now > h->lost_at + rejoin_limit() || !may_rejoin(l)) {
        fprintf(stderr, "launch: host %s has not come back: %s\n", h->name,
                h->why);
        h->lost_at = 0;
    } else if (now > h->call_at) {
        h->state = FL_HOST_CALLED;
        h->package_sent = h->certified = false;
        h->sent = 0;
        h->said.n = 0;
        if (start_ssh(l, h))
            give_up(l, h, fl_arena_strdup(l->arena, fl_errmsg()));
    }
}

static const char *why_unprepared(fl_launch *l, const fl_host *h)
{
    return fl_arena_printf(
        l->arena,
        "it %s and has said nothing for %g s (%s sets how long to wait); "
        "do its disks and its name server answer?",
        h->package_sent ? "prepares its workspace" : "receives its workspace",
        (double)prepare_limit(h) / FL_SEC,
        h->lost_at ? "FLUID_REJOIN" : "FLUID_START");
}

static void hear_host(fl_launch *l, fl_host *h)
{
    const int64_t now = now_ns();
    if (h->lost_at && is_gone(h))
        call_again(l, h);
    if (is_gone(h))
        return;
    read_errors(h);
    send_package(l, h);
    if (now > h->told + BEAT * FL_SEC) {
        fl_channel_text(&h->channel, "alive", 0, "");
        h->told = now;
    }
    const fl_err closed = fl_channel_move(&h->channel, 0);
    take_notices(l, h);
    if (is_gone(h))
        return;
    if (closed)
        on_closed(l, h);
    else if (h->state == FL_HOST_CALLED && now > h->heard + HELLO * FL_SEC)
        give_up(l, h,
                fl_arena_printf(l->arena,
                                "paddle agent has not answered from there for "
                                "%d s; try it by hand: %s paddle version",
                                HELLO, way_to(l, h)));
    else if (h->state == FL_HOST_ASKED && now - h->heard > prepare_limit(h))
        give_up(l, h, why_unprepared(l, h));
    else if (h->state == FL_HOST_READY && now > h->heard + SILENCE * FL_SEC)
        give_up(
            l, h,
            fl_arena_printf(l->arena, "it has said nothing for %d s", SILENCE));
}

void fl_hosts_hear(fl_launch *l)
{
    for (int64_t i = 0; i < l->hosts.n; i++)
        hear_host(l, &l->hosts.at[i]);
    if (l->show_at && now_ns() > l->show_at && !l->opts->quiet)
        fl_hosts_show(l);
}

/* --- all at one glance --- */

/* "runs", "is started again", "exit code 3". */
static const char *state_of(const fl_proc *p, char buf[64])
{
    const char *state = !p->ended     ? "runs"
                        : p->again_at ? "is started again"
                        : p->code     ? NULL
                                      : "has ended well";
    if (!state)
        return fl_proc_how(p, buf);
    snprintf(buf, 64, "%s", state);
    return buf;
}

/* Steps and speed, as "812" and "13.5"; empty for a process without steps: a
 * server, or a program that is not a trainer. */
static void write_steps(const fl_proc *p, char steps[32], char speed[32])
{
    *steps = *speed = 0;
    if (p->steps)
        snprintf(steps, 32, "%lld", (long long)p->steps);
    if (p->steps && !p->ended)
        snprintf(speed, 32, "%.1f", p->speed);
}

void fl_hosts_show(fl_launch *l)
{
    char name[32], state[64], steps[32], speed[32];
    const int64_t now = now_ns();
    l->show_at = now + VIEW * FL_SEC;
    if (!l->hosts.n)
        return;
    fprintf(stderr, "launch: after %d s\n", (int)((now - l->began) / FL_SEC));
    fprintf(stderr, "  %-12s %-20s %-16s %8s %8s  %s\n", "process", "host",
            "state", "steps", "steps/s", "last line of its log");
    for (int64_t i = 0; i < l->procs.n; i++) {
        const fl_proc *p = &l->procs.at[i];
        write_steps(p, steps, speed);
        fprintf(stderr, "  %-12s %-20s %-16s %8s %8s  %.*s\n",
                fl_proc_name(p, name), p->host->host, state_of(p, state), steps,
                speed, GLANCE, p->last.at ? p->last.at : "");
    }
}

/* --- the start --- */

/* Wait until tar has packed the workspace. Err: EINTR. */
static fl_err wait_tar(const fl_launch *l, pid_t pid, int *status)
{
    const int64_t began = now_ns();
    int64_t line = began + PATIENCE * FL_SEC;
    while (!waitpid(pid, status, WNOHANG)) {
        if (fl_launch_is_asked()) {
            kill(pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR)
                ;
            return fl_fail(FL_EINTR,
                           "launch: interrupted while %s was packed; nothing "
                           "was started",
                           l->opts->package);
        }
        if (now_ns() > line) {
            fprintf(stderr,
                    "launch: packing %s (Ctrl-C ends it), %lld MB, "
                    "%d s\n",
                    l->opts->package,
                    (long long)lseek(l->package, 0, SEEK_CUR) >> 20,
                    (int)((now_ns() - began) / FL_SEC));
            line = now_ns() + PATIENCE * FL_SEC;
        }
        usleep(1000);
    }
    return FL_OK;
}

/* Pack the workspace into a tar file that has no name. */
static fl_err pack_workspace(fl_launch *l)
{
    const char *set = fl_flag_text("TMPDIR"), *temp = set ? set : "/tmp";
    char *path = fl_arena_printf(l->arena, "%s/paddle-package-XXXXXX", temp);
    char *argv[] = {"tar", "-C", (char *)l->opts->package, "-cf", "-",
                    ".",   NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = 0;
    if (access(l->opts->package, R_OK | X_OK))
        return fl_fail(FL_ENOENT, "launch: --job_dispatch_package %s: %s",
                       l->opts->package, strerror(errno));
    l->package = mkostemp(path, O_CLOEXEC);
    if (l->package < 0)
        return fl_fail(FL_EIO,
                       "launch: the package cannot be packed into %s: %s; name "
                       "a folder that can be written with TMPDIR",
                       temp, strerror(errno));
    unlink(path);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, l->package, 1);
    const int why = posix_spawnp(&pid, "tar", &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (!why)
        FL_TRY(wait_tar(l, pid, &status));
    if (why || status)
        return fl_fail(FL_EIO,
                       "launch: --job_dispatch_package %s cannot be packed "
                       "into %s: %s",
                       l->opts->package, temp,
                       why ? strerror(why)
                           : "tar has failed, and said above why");
    return FL_OK;
}

/* "launch: waiting for b (it has not answered, silent for 5 s of 30), 5 s". The
 * limits count the time in which a host says nothing. */
static void show_wait(const fl_launch *l, int64_t began)
{
    bool named = false;
    const int64_t now = now_ns();
    for (int64_t i = 0; i < l->hosts.n; i++) {
        const fl_host *h = &l->hosts.at[i];
        if (h->state > FL_HOST_ASKED)
            continue;
        fprintf(stderr, "%s%s (%s, silent for %d s of %g)",
                named ? ", " : "launch: waiting for ", h->name,
                h->state == FL_HOST_CALLED ? "it has not answered"
                : h->package_sent          ? "it prepares its workspace"
                                           : "the workspace is sent",
                (int)((now - h->heard) / FL_SEC),
                h->state == FL_HOST_CALLED ? HELLO
                                           : (double)prepare_limit(h) / FL_SEC);
        named = true;
    }
    if (named)
        fprintf(stderr, ", %d s\n", (int)((now - began) / FL_SEC));
}

/* Sleep until a host sends something. */
static void wait_hosts(const fl_launch *l)
{
    FL_VEC(struct pollfd) fds = {0};
    for (int64_t i = 0; i < l->hosts.n; i++) {
        const fl_channel *c = &l->hosts.at[i].channel;
        const short events =
            (short)(POLLIN | (fl_channel_left(c) ? POLLOUT : 0));
        fl_push(&fds, ((struct pollfd){.fd = c->in, .events = events}));
    }
    poll(fds.at, (nfds_t)fds.n, SLICE);
    fl_vec_fini(&fds);
}

static int count_in(const fl_launch *l, fl_host_state from, fl_host_state to)
{
    int n = 0;
    for (int64_t i = 0; i < l->hosts.n; i++)
        n += l->hosts.at[i].state >= from && l->hosts.at[i].state <= to;
    return n;
}

/* Report all hosts that cannot be used, on at most one screen. */
static fl_err check_hosts(const fl_launch *l)
{
    const int bad = count_in(l, FL_HOST_REFUSED, FL_HOST_LOST);
    if (!bad)
        return FL_OK;
    int shown = 0;
    for (int64_t i = 0; i < l->hosts.n && shown < SHOWN; i++)
        if (is_gone(&l->hosts.at[i])) {
            fprintf(stderr, "launch: host %s cannot be used: %s\n",
                    l->hosts.at[i].name, l->hosts.at[i].why);
            shown++;
        }
    if (bad > shown)
        fprintf(stderr, "launch: and %d more\n", bad - shown);
    return fl_fail(FL_EIO,
                   "launch: %d of %d hosts cannot be used; nothing was "
                   "started",
                   bad, (int)l->hosts.n);
}

static fl_err wait_ready(fl_launch *l)
{
    const int64_t began = now_ns();
    int64_t line = began + PATIENCE * FL_SEC;
    while (count_in(l, FL_HOST_CALLED, FL_HOST_ASKED)) {
        wait_hosts(l);
        fl_hosts_hear(l);
        if (fl_launch_is_asked())
            return fl_fail(FL_EINTR, "launch: interrupted while hosts were "
                                     "prepared; nothing was started");
        if (now_ns() > line) {
            show_wait(l, began);
            line = now_ns() + PATIENCE * FL_SEC;
        }
    }
    return check_hosts(l);
}

/* Endpoints that a dry run shows. A real run uses ports that are free on the
 * host. */
static const char *likely_ports(fl_launch *l, const fl_host *h, int n)
{
    fl_str s = {0};
    const int first = l->opts->start_port ? l->opts->start_port : FIRST_PORT;
    for (int i = 0; i < n; i++)
        fl_str_printf(&s, strchr(h->host, ':') ? "%s[%s]:%d" : "%s%s:%d",
                      i ? "," : "", h->host, first + i);
    const char *text = fl_arena_strdup(l->arena, s.at ? s.at : "");
    fl_str_fini(&s);
    return text;
}

/* Set all endpoints, in the order of hosts. Each host has the same number of
 * them. */
static fl_err join_ports(fl_launch *l, int each)
{
    for (int64_t i = 0; i < l->hosts.n; i++) {
        int n = 0;
        char *rest = fl_arena_strdup(l->arena, l->hosts.at[i].ports);
        for (char *at; (at = strtok_r(rest, ",", &rest)); n++)
            fl_push(&l->endpoints, at);
        if (n != each)
            return fl_fail(FL_EPROTO,
                           "launch: host %s has %d ports, %d were "
                           "asked for",
                           l->hosts.at[i].name, n, each);
    }
    return FL_OK;
}

/* The time when the job began and a random number, as in names of folders:
 * 20180102030405.1c0ffee1. Jobs that begin in the same second have folders of
 * their own, and nobody else can make one first. */
static const char *make_stamp(fl_launch *l)
{
    struct timespec now;
    struct tm tm;
    char text[32];
    fl_entropy e = fl_entropy_real();
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(text, sizeof text, "%Y%m%d%H%M%S", localtime_r(&now.tv_sec, &tm));
    return fl_arena_printf(l->arena, "%s.%08x", text, (unsigned)e.draw(&e));
}

/* Traffic between hosts is encrypted, unless the user has turned that off or
 * has given certificates. */
static fl_err make_authority(fl_launch *l)
{
    if (l->hosts.n < 2 || l->opts->insecure || fl_flag_text("FLUID_TLS_CERT"))
        return FL_OK;
    l->with_tls = true;
    return fl_ca_new(&l->ca);
}

fl_err fl_hosts_start(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const int each = o->collective ? o->trainers : o->servers;
    l->stamp = make_stamp(l);
    FL_TRY(make_authority(l));
    if (o->package && !o->dry_run)
        FL_TRY(pack_workspace(l));
    for (int64_t i = 0; i < l->hosts.n; i++) {
        fl_host *h = &l->hosts.at[i];
        if (o->dry_run) {
            h->ports = likely_ports(l, h, each);
            h->folder = workspace_of(l);
        } else {
            FL_TRY(start_ssh(l, h));
        }
    }
    if (!o->dry_run)
        FL_TRY(wait_ready(l));
    l->show_at = now_ns() + VIEW * FL_SEC;
    return join_ports(l, each);
}

/* The name or address by which other hosts connect to a host. */
static const char *name_to_certify(fl_launch *l, const fl_host *h)
{
    fl_endpoint e;
    char *first = fl_arena_strdup(l->arena, h->ports);
    first[strcspn(first, ",")] = 0;
    if (fl_endpoint_read(first, "launch: server ", &e))
        return h->host;
    return fl_arena_printf(l->arena, "%.*s", e.host_size, e.host);
}

/* Make the certificate of a host here and send it over ssh. */
static fl_err certify(fl_launch *l, fl_host *h)
{
    char *certificate, *key;
    if (!l->ca || h->certified)
        return FL_OK;
    FL_TRY(fl_ca_issue(l->ca, name_to_certify(l, h), CERTIFICATE_DAYS,
                       &certificate, &key));
    fl_channel_text(&h->channel, "tls", 0, certificate);
    fl_channel_text(&h->channel, "tls", 1, key);
    fl_channel_text(&h->channel, "tls", 2, fl_ca_pem(l->ca));
    fl_mem_free(certificate);
    fl_mem_free(key);
    h->certified = true;
    return FL_OK;
}

fl_err fl_host_run(fl_launch *l, fl_proc *p)
{
    fl_host *h = p->host;
    int log;
    FL_TRY(fl_proc_open_log(l, p, &log));
    close(log);
    FL_TRY(certify(l, h));
    if (l->key)
        fl_channel_text(&h->channel, "key", 0, l->key);
    for (char **word = l->argv; *word; word++)
        fl_channel_text(&h->channel, "arg", 0, *word);
    for (char **e = fl_launch_env(l, p); *e; e++)
        fl_channel_text(&h->channel, "env", 0, *e);
    fl_channel_text(&h->channel, "start", p->number,
                    fl_arena_printf(l->arena, "%s %d",
                                    p->server ? "server" : "trainer",
                                    p->place));
    p->ended = false;
    p->empty = true; /* the agent ends the process group */
    p->began = now_ns();
    if (is_gone(h)) {
        p->lost = true;
        fl_proc_note_end(l, p, LOST_CODE, 0, 0);
    }
    return FL_OK;
}

void fl_host_signal(const fl_proc *p, int signal)
{
    if (!p->ended && !is_gone(p->host))
        put_number(p->host, "signal", p->number, signal);
}

/* --- the end --- */

/* Agents end when the launcher closes its side; then ssh ends. */
void fl_hosts_end(fl_launch *l)
{
    const int64_t until = now_ns() + END * FL_SEC;
    const fl_sentence why = fl_sentence_keep(); /* the job may have failed */
    bool left = l->hosts.n > 0;
    for (int64_t i = 0; i < l->hosts.n; i++) {
        fl_host *h = &l->hosts.at[i];
        if (!is_gone(h) && h->channel.in >= 0 &&
            !fl_channel_move(&h->channel, 0))
            shutdown(h->channel.in, SHUT_WR);
    }
    while (left && now_ns() < until) {
        left = false;
        for (int64_t i = 0; i < l->hosts.n; i++) {
            fl_host *h = &l->hosts.at[i];
            if (h->pid && waitpid(h->pid, NULL, WNOHANG) == h->pid)
                h->pid = 0;
            if (h->pid)
                left = true;
            if (h->channel.in >= 0)
                (void)!fl_channel_move(&h->channel, 0); /* may be full */
        }
        if (left)
            usleep(10000);
    }
    for (int64_t i = 0; i < l->hosts.n; i++) {
        fl_host *h = &l->hosts.at[i];
        if (h->pid)
            fprintf(stderr,
                    "launch: host %s has not said that its processes have "
                    "ended; they end within a minute, if it is up\n",
                    h->name);
        lose_processes(l, h);
        end_channel(h);
        fl_str_fini(&h->said);
    }
    if (l->package >= 0)
        close(l->package);
    fl_ca_free(l->ca);
    fl_sentence_restore(&why);
}
