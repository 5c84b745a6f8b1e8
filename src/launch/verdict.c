/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - what the launcher prints: the output of trainer 0 during the job,
 * and at the end which process failed first. */
#include "launch/launch.h"

#include "base/clock.h"
#include "base/disk.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    LAST_LINES = 20,
    LAST_BYTES = 16384,
    LINE_BYTES = 480, /* bytes of a line that are shown */
    OTHERS = 8 /* largest number of failed processes that are named after the
                  first */
};

const char *fl_proc_name(const fl_proc *p, char buf[32])
{
    const char *kind = p->server ? "server" : p->endpoint ? "rank" : "trainer";
    snprintf(buf, 32, "%s %d", kind, p->id);
    return buf;
}

/* With several hosts all logs are shown as they come, see hosts.c. A pod shows
 * its only process. */
void fl_launch_follow(fl_launch *l)
{
    char buf[8192];
    ssize_t n;
    fl_proc *p = NULL;
    for (int64_t i = 0; i < l->procs.n && !p; i++)
        if (!l->procs.at[i].server || l->opts->pod)
            p = &l->procs.at[i];
    const int fd = p && !p->host && !l->opts->quiet
                       ? open(p->log, O_RDONLY | O_CLOEXEC)
                       : -1;
    if (fd < 0)
        return;
    while ((n = pread(fd, buf, sizeof buf, p->shown)) > 0) {
        p->shown += n;
        l->in_a_line = buf[n - 1] != '\n';
        fwrite(buf, 1, (size_t)n, stderr);
    }
    close(fd);
}

const char *fl_proc_how(const fl_proc *p, char buf[64])
{
    if (p->lost)
        snprintf(buf, 64, "its host was lost");
    else if (p->signal)
        snprintf(buf, 64, "signal %d (%s)", p->signal, strsignal(p->signal));
    else if (p->code == FL_EXIT_ENDED)
        snprintf(buf, 64, "it ended because the job did");
    else
        snprintf(buf, 64, "exit code %d", p->code);
    return buf;
}

/* Of a progress bar that was redrawn, only the last state. */
static const char *last_state(const char *line)
{
    const char *bar = strrchr(line, '\r');
    return bar && bar[1] ? bar + 1 : line;
}

/* What is shown of a line, with an ellipsis where it is longer. */
static void show_text(const char *line)
{
    fprintf(stderr, "%.*s%s\n", LINE_BYTES, line,
            strlen(line) > LINE_BYTES ? " .." : "");
}

/* Read the end of a log, without empty lines after it. Returns its length. */
static size_t read_tail(const char *path, char buf[LAST_BYTES + 1])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    const off_t from = size > LAST_BYTES ? size - LAST_BYTES : 0;
    ssize_t n = fd < 0 ? 0 : pread(fd, buf, LAST_BYTES, from);
    if (fd >= 0)
        close(fd);
    while (n > 0 && buf[n - 1] == '\n')
        n--;
    n = n > 0 ? n : 0;
    buf[n] = 0;
    return (size_t)n;
}

/* The last lines of a log, each indented. */
static void show_tail(const char *path)
{
    char buf[LAST_BYTES + 1];
    const size_t n = read_tail(path, buf);
    fprintf(stderr, "%s %s%s\n", n ? "the last lines of" : "its log", path,
            n ? ":" : " is empty");
    char *at = buf + n;
    for (int lines = 0; at > buf; at--)
        if (at[-1] == '\n' && ++lines == LAST_LINES)
            break;
    for (char *line; n && (line = strsep(&at, "\n"));) {
        fputs("    ", stderr);
        show_text(last_state(line));
    }
}

/* Where the last traceback of a log begins; NULL: it has none. */
static const char *find_trace(const char *tail)
{
    static const char head[] = "Traceback (most recent call last):";
    const char *trace = NULL;
    for (const char *at = tail; (at = strstr(at, head)); at++)
        trace = at;
    return trace;
}

/* The line of a log that says why its process has failed: the exception of the
 * last traceback, else the last line. Log lines may follow a traceback. */
static const char *find_reason(char *tail, size_t n)
{
    const char *trace = find_trace(tail);
    char *line = tail;
    for (char *at = tail + n; at > tail && line == tail; at--)
        if (at[-1] == '\n')
            line = at;
    for (char *at = tail; trace && (at = strchr(at, '\n')); at++)
        if (at > trace && at[1] != ' ' && at[1] != '\n') {
            line = at + 1;
            break;
        }
    line[strcspn(line, "\n")] = 0;
    return last_state(line);
}

bool fl_proc_says_interrupt(const fl_proc *p)
{
    static const char word[] = "KeyboardInterrupt";
    char buf[LAST_BYTES + 1];
    const size_t n = read_tail(p->log, buf), size = strlen(word);
    return n >= size && !strcmp(buf + n - size, word) &&
           (n == size || buf[n - size - 1] == '\n');
}

/* The last line of a log of the form "paddle: the job has failed: trainer 1:
 * ValueError", by which a process names the reason of its end; NULL: none. */
static const char *find_own_line(const fl_proc *p, char buf[LAST_BYTES + 1])
{
    static const char head[] = "paddle: ";
    char *line = NULL;
    read_tail(p->log, buf);
    for (char *at = buf; (at = strstr(at, head)); at++)
        if (at == buf || at[-1] == '\n')
            line = at;
    if (line)
        line[strcspn(line, "\n")] = 0;
    return line;
}

/* The process that another one names as the reason of its own end; -1: none. */
static int find_named(const fl_launch *l, const fl_proc *by)
{
    char buf[LAST_BYTES + 1], name[32];
    const char *why = find_own_line(by, buf), *first = NULL;
    int found = -1;
    for (int64_t i = 0; why && i < l->procs.n; i++) {
        const char *at = strstr(why, fl_proc_name(&l->procs.at[i], name));
        const int code = l->procs.at[i].code;
        if (at && !isdigit((unsigned char)at[strlen(name)]) && code &&
            code != FL_EXIT_ENDED && (!first || at < first)) {
            first = at;
            found = (int)i;
        }
    }
    return found;
}

void fl_launch_find_cause(fl_launch *l)
{
    if (l->first < 0 || l->procs.at[l->first].code != FL_EXIT_ENDED)
        return;
    int cause = find_named(l, &l->procs.at[l->first]);
    if (cause >= 0)
        l->named_by = l->first;
    for (int64_t i = 0; i < l->procs.n && cause < 0; i++) {
        const fl_proc *p = &l->procs.at[i];
        if (p->code && !p->stopped && !fl_proc_is_echo(l, p))
            cause = (int)i;
    }
    if (cause >= 0)
        l->first = cause;
}

/* The last line of the verdict: why the first process has failed. One that we
 * stopped had failed before, or stood still, as another one says. */
static void show_reason(const fl_launch *l, const fl_proc *p)
{
    char buf[LAST_BYTES + 1], name[32], end[64];
    const size_t n = read_tail(p->log, buf);
    const bool trace = find_trace(buf);
    const bool silent = p->stopped && l->named_by >= 0 && !trace;
    const char *why = p->lost  ? p->host->why
                      : silent ? find_own_line(&l->procs.at[l->named_by], buf)
                      : (p->signal && !p->stopped) || !n ? fl_proc_how(p, end)
                                                         : find_reason(buf, n);
    fputs("launch: reason: ", stderr);
    const bool named = fl_starts_with(why, "paddle: "); /* the process */
    if (!named)
        fprintf(stderr, "%s: ", fl_proc_name(p, name));
    /* sys.exit("text") ends with code 1, and its text is the last line. With
     * another code the last line need not be about an error. */
    if (!named && n && !trace && !p->lost && !p->stopped && !p->signal &&
        p->code > 1)
        fprintf(stderr, "%s; the last line of its log: ", fl_proc_how(p, end));
    show_text(why + (named ? strlen("paddle: ") : 0));
}

/* Say so if the disk is full, since then the logs may lack the reason. */
static void show_full_disk(const char *folder)
{
    struct statvfs disk;
    if (!statvfs(folder, &disk) && !disk.f_bavail)
        fprintf(stderr, "the disk of %s is full\n", folder);
}

/* Name the processes that were stopped, or not stopped, and did not end well.
 * Those that ended because the job did are only counted. */
static int show_failed(const fl_launch *l, bool stopped, int shown)
{
    char name[32], end[64];
    for (int64_t i = 0; i < l->procs.n; i++) {
        const fl_proc *p = &l->procs.at[i];
        if (p->code && p->code != FL_EXIT_ENDED && i != l->first &&
            p->stopped == stopped && shown++ < OTHERS)
            fprintf(stderr, "  %s: %s%s, %s\n", fl_proc_name(p, name),
                    stopped ? "stopped, " : "", fl_proc_how(p, end), p->log);
    }
    return shown;
}

static void show_others(const fl_launch *l)
{
    int well = 0, ended = 0;
    for (int64_t i = 0; i < l->procs.n; i++) {
        well += !l->procs.at[i].code;
        ended += l->procs.at[i].code == FL_EXIT_ENDED && i != l->first;
    }
    fprintf(stderr, "the others:\n");
    const int bad = show_failed(l, true, show_failed(l, false, 0));
    if (bad > OTHERS)
        fprintf(stderr, "  %d more did not end well\n", bad - OTHERS);
    if (ended)
        fprintf(stderr, "  %d ended because the job did\n", ended);
    if (well)
        fprintf(stderr, "  %d ended well\n", well);
}

static void show_good_end(const fl_launch *l, double seconds)
{
    int servers = 0;
    for (int64_t i = 0; i < l->procs.n; i++)
        servers += l->procs.at[i].server;
    const int trainers = (int)l->procs.n - servers;
    fprintf(stderr, "launch: %d %s%s", trainers,
            l->opts->collective ? "rank" : "trainer", trainers == 1 ? "" : "s");
    if (servers)
        fprintf(stderr, " and %d server%s", servers, servers == 1 ? "" : "s");
    fprintf(stderr, " %s in %.1f s; their logs are in %s\n",
            l->asks ? "were stopped" : "finished", seconds, l->opts->log_dir);
}

void fl_launch_verdict(const fl_launch *l)
{
    char name[32], end[64];
    const double s = 1e9;
    if (l->in_a_line)
        fputc('\n', stderr);
    if (l->first < 0) {
        show_good_end(l,
                      (double)(fl_clock_now(fl_clock_real()) - l->began) / s);
        return;
    }
    const fl_proc *p = &l->procs.at[l->first];
    fprintf(stderr, "launch: %s failed first: %s%s after %.1f s\n",
            fl_proc_name(p, name),
            p->stopped ? "it did not end and was stopped, " : "",
            fl_proc_how(p, end), (double)p->lived / s);
    if (fl_proc_has_completed(p) && p->server)
        fputs("its job had ended, so the parameters are whole; but its script "
              "may not have run\nto its end: do by hand what the script does "
              "after fleet.run_server(),\nor after exe.run of the server's "
              "program\n",
              stderr);
    else if (fl_proc_has_completed(p))
        fputs("it had completed, so the parameters of the job are whole; but "
              "its script may not\nhave run to its end: do by hand what the "
              "script does after exe.close() or\nfleet.stop_worker()\n",
              stderr);
    if (p->host)
        fprintf(stderr, "it ran on host %s in %s%s%s\n", p->host->name,
                p->host->folder, p->lost ? ", which is lost: " : "",
                p->lost ? p->host->why : "");
    show_tail(p->log);
    show_full_disk(l->opts->log_dir);
    if (l->procs.n > 1)
        show_others(l);
    show_reason(l, p);
}
