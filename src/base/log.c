/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - a line is made on the stack and written at once. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

fl_level fl_level_of(const char *own, const char *glog_v, const char *glog_min)
{
    static const char *const name[] = {"error", "warn", "info", "debug"};
    for (int i = 0; own && i < 4; i++)
        if (!strcmp(own, name[i]) || (own[0] == '0' + i && !own[1]))
            return (fl_level)i;
    const int least = glog_min ? atoi(glog_min) : 0;
    return least > 1                    ? FL_LEVEL_ERROR
           : least == 1                 ? FL_LEVEL_WARN
           : glog_v && atoi(glog_v) > 0 ? FL_LEVEL_DEBUG
                                        : FL_LEVEL_INFO;
}

/* The level that is shown. It is read once, because getenv is not safe while
 * other threads set variables. Two threads that read it at the same time get
 * the same result. */
static int shown_level(void)
{
    static _Atomic int log_level = -1;
    int l = atomic_load_explicit(&log_level, memory_order_relaxed);
    if (l < 0) {
        l = (int)fl_level_of(getenv("FL_LOG"), getenv("GLOG_v"),
                             getenv("GLOG_minloglevel"));
        atomic_store_explicit(&log_level, l, memory_order_relaxed);
    }
    return l;
}

/* The file that also gets the lines; -1: none. */
static _Atomic int *kept_file(void)
{
    static _Atomic int log_file = -1;
    return &log_file;
}

void fl_log_keep(const char *name)
{
    const char *folder = getenv("PADDLE_LOG_DIR");
    char path[4096];
    if (!folder || !*folder || atomic_load(kept_file()) >= 0)
        return;
    mkdir(folder, 0777); /* it may exist */
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        FL_WARN("the log cannot be written to %s: %s", path, strerror(errno));
    else
        atomic_store(kept_file(), fd);
}

/* The last folder and the file: "src/exec/plan.c" is shown as "exec/plan.c". */
static const char *short_name(const char *file)
{
    const char *at = file + strlen(file);
    for (int slashes = 0; at > file; at--)
        if (at[-1] == '/' && ++slashes == 2)
            break;
    return at;
}

size_t fl_log_prefix(char out[FL_LOG_LINE], fl_level level, int64_t time,
                     int thread, const char *file, int line)
{
    struct tm t;
    time_t seconds = (time_t)(time / 1000000);
    localtime_r(&seconds, &t);
    return (size_t)snprintf(
        out, FL_LOG_LINE, "%c%02d%02d %02d:%02d:%02d.%06d %5d %.200s:%d] ",
        "EWII"[level], t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
        (int)(time % 1000000), thread, short_name(file), line);
}

void fl_log(fl_level level, const char *file, int line, const char *fmt, ...)
{
    if ((int)level > shown_level())
        return;
    int kept = errno;
    char text[FL_LOG_LINE];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t n = fl_log_prefix(text, level,
                             (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000,
                             (int)gettid(), file, line);
    va_list ap;
    va_start(ap, fmt);
    int more = vsnprintf(text + n, sizeof text - n, fmt, ap);
    va_end(ap);
    n += more > 0 ? (size_t)more : 0;
    if (n > sizeof text - 1)
        n = sizeof text - 1;
    text[n++] = '\n';
    const int kept_fd = atomic_load(kept_file());
    ssize_t put = write(STDERR_FILENO, text, n);
    if (kept_fd >= 0)
        put = write(kept_fd, text, n);
    (void)put; /* a failure cannot be reported anywhere */
    errno = kept;
}

void fl_log_line(const char *text)
{
    FL_INFO("%s", text);
}
