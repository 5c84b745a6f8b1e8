/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - one line to stderr, in glog's shape.
 *
 *     FL_WARN("%s has left, %d remain", name, n);
 *     W1115 20:14:45.123456  3867 protocol/coord.c:248] a:1 has left, 3 remain
 *
 * An error is returned or logged, never both. Kernels log nothing, and what is
 * logged in every step has the level debug. */
#ifndef FL_BASE_LOG_H
#define FL_BASE_LOG_H

#include "fluid.h"

#include <stddef.h>
#include <stdint.h>

typedef enum fl_level {
    FL_LEVEL_ERROR, /* a human must act */
    FL_LEVEL_WARN,  /* the program can go on */
    FL_LEVEL_INFO,  /* life events of a process */
    FL_LEVEL_DEBUG,
} fl_level;

#define FL_ERROR(...) fl_log(FL_LEVEL_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define FL_WARN(...)  fl_log(FL_LEVEL_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define FL_INFO(...)  fl_log(FL_LEVEL_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define FL_DEBUG(...) fl_log(FL_LEVEL_DEBUG, __FILE__, __LINE__, __VA_ARGS__)

/* One write per line, so that lines of threads and processes never mix.
 * Thread: any. */
void fl_log(fl_level level, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The level that is shown, from the values of FL_LOG (`own`: "error" .. "debug"
 * or 0 .. 3), GLOG_v (1 or more: debug) and GLOG_minloglevel (1: warnings and
 * errors, 2 or more: errors only). Each may be NULL. FL_LOG comes first, then
 * GLOG_minloglevel, then GLOG_v; the default is info. */
fl_level fl_level_of(const char *own, const char *glog_v, const char *glog_min);

enum {
    FL_LOG_LINE = 4096 /* bytes; a pipe takes as many in one write */
};

/* Write the start of a line, before the text, and return its length. `time` is
 * in microseconds since 1970 and is shown in local time. */
size_t fl_log_prefix(char out[FL_LOG_LINE], fl_level level, int64_t time,
                     int thread, const char *file, int line);

#endif
