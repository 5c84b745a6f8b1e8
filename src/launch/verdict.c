/* verdict.c - what a user reads of a job: trainer 0 while it runs, and at the
 * end one screen that says who failed first. */
#include "launch/launch.h"

#include "base/clock.h"
#include "base/disk.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    LAST_LINES = 20,
    LAST_BYTES = 16384
};

const char *fl_proc_name(const fl_proc *p, char buf[32])
{
    snprintf(buf, 32, "%s %d", p->server ? "server" : "trainer", p->id);
    return buf;
}

void fl_launch_follow(fl_launch *l)
{
    char buf[8192];
    ssize_t n;
    const char *log = NULL;
    for (int64_t i = 0; i < l->procs.n && !log; i++)
        if (!l->procs.at[i].server)
            log = l->procs.at[i].log;
    const int fd =
        log && !l->opts->quiet ? open(log, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    while ((n = pread(fd, buf, sizeof buf, l->shown)) > 0) {
        l->shown += n;
        fwrite(buf, 1, (size_t)n, stderr);
    }
    close(fd);
}

/* "exit code 3", "signal 9 (Killed)" */
static const char *how(const fl_proc *p, char buf[64])
{
    if (p->code > 128)
        snprintf(buf, 64, "signal %d (%s)", p->code - 128,
                 strsignal(p->code - 128));
    else
        snprintf(buf, 64, "exit code %d", p->code);
    return buf;
}

/* The last lines of a log, each indented. */
static void show_tail(const char *path)
{
    char buf[LAST_BYTES + 1];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const off_t size = lseek(fd, 0, SEEK_END);
    const off_t from = size > LAST_BYTES ? size - LAST_BYTES : 0;
    ssize_t n = pread(fd, buf, LAST_BYTES, from);
    close(fd);
    while (n > 0 && buf[n - 1] == '\n')
        n--;
    if (n <= 0)
        return;
    buf[n] = 0;
    char *at = buf + n;
    for (int lines = 0; at > buf; at--)
        if (at[-1] == '\n' && ++lines == LAST_LINES)
            break;
    for (char *line; (line = strsep(&at, "\n"));)
        fprintf(stderr, "    %s\n", line);
}

static void show_others(const fl_launch *l)
{
    char name[32], end[64];
    for (int64_t i = 0; i < l->procs.n; i++) {
        const fl_proc *p = &l->procs.at[i];
        if (i != l->first)
            fprintf(stderr, "  %s: %s%s, %s\n", fl_proc_name(p, name),
                    p->stopped ? "stopped, " : "", how(p, end), p->log);
    }
}

static void show_good_end(const fl_launch *l, double seconds)
{
    int servers = 0;
    for (int64_t i = 0; i < l->procs.n; i++)
        servers += l->procs.at[i].server;
    fprintf(stderr,
            "launch: %d trainers and %d servers %s in %.1f s; "
            "their logs are in %s\n",
            (int)l->procs.n - servers, servers,
            l->asks ? "were stopped" : "finished", seconds, l->opts->log_dir);
}

void fl_launch_verdict(const fl_launch *l)
{
    char name[32], end[64];
    const double s = 1e9;
    if (l->first < 0) {
        show_good_end(l,
                      (double)(fl_clock_now(fl_clock_real()) - l->began) / s);
        return;
    }
    const fl_proc *p = &l->procs.at[l->first];
    fprintf(stderr, "launch: %s failed first: %s after %.1f s\n",
            fl_proc_name(p, name), how(p, end), (double)p->lived / s);
    fprintf(stderr, "the last lines of %s:\n", p->log);
    show_tail(p->log);
    fprintf(stderr, "the others:\n");
    show_others(l);
}
