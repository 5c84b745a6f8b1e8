/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/disk.h"
#include "base/pool.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* stderr goes to a file from here on, until read_back. The level is the usual
 * one, whatever the environment says. */
static int redirect(char path[300])
{
    unsetenv("FL_LOG");
    unsetenv("GLOG_v");
    unsetenv("GLOG_minloglevel");
    snprintf(path, 300, "%s/log", fl_test_dir());
    int kept = dup(STDERR_FILENO);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    CHECK(kept >= 0 && fd >= 0);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return kept;
}

static void read_back(int kept, const char *path, fl_str *out)
{
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK_OK(fl_disk_real()->read(fl_disk_real(), path, 1 << 20, out));
}

static void line_has_the_shape_of_glog(void)
{
    char text[FL_LOG_LINE];
    setenv("TZ", "UTC", 1);
    tzset();
    size_t n = fl_log_prefix(text, FL_LEVEL_INFO, 1542312885123456, 3867,
                             "src/exec/file.c", 248);
    CHECK_STR(text, "I1115 20:14:45.123456  3867 exec/file.c:248] ");
    CHECK_INT((int64_t)n, (int64_t)strlen(text));
    fl_log_prefix(text, FL_LEVEL_ERROR, 7, 123456, "x.c", 1);
    CHECK_STR(text, "E0101 00:00:00.000007 123456 x.c:1] ");
}

static void level_comes_from_three_variables(void)
{
    CHECK_INT(fl_level_of(NULL, NULL, NULL), FL_LEVEL_INFO);
    CHECK_INT(fl_level_of(NULL, "0", "0"), FL_LEVEL_INFO);
    CHECK_INT(fl_level_of(NULL, "-1", NULL), FL_LEVEL_INFO);
    CHECK_INT(fl_level_of(NULL, "3", NULL), FL_LEVEL_DEBUG);
    CHECK_INT(fl_level_of("error", "3", NULL), FL_LEVEL_ERROR);
    CHECK_INT(fl_level_of("1", NULL, "0"), FL_LEVEL_WARN);
    CHECK_INT(fl_level_of("loud", "1", NULL), FL_LEVEL_DEBUG);
    CHECK_INT(fl_level_of(NULL, "3", "1"), FL_LEVEL_WARN);
    CHECK_INT(fl_level_of(NULL, NULL, "2"), FL_LEVEL_ERROR);
    CHECK_INT(fl_level_of(NULL, NULL, "3"), FL_LEVEL_ERROR);
    CHECK_INT(fl_level_of("debug", NULL, "3"), FL_LEVEL_DEBUG);
}

static void log_writes_to_stderr_and_keeps_errno(void)
{
    char path[300];
    fl_str s = {0};
    int kept = redirect(path);
    errno = ENOSPC;
    FL_WARN("%s is %d", "it", 5);
    FL_DEBUG("not shown");
    int after = errno;
    read_back(kept, path, &s);
    CHECK_INT(after, ENOSPC);
    CHECK(s.at[0] == 'W' && strstr(s.at, "base/log_test.c:"));
    CHECK(fl_ends_with(s.at, "] it is 5\n"));
    CHECK(!strstr(s.at, "not shown"));
    fl_str_fini(&s);
}

static void long_lines_are_cut(void)
{
    char path[300];
    static char text[3 * FL_LOG_LINE];
    fl_str s = {0};
    memset(text, 'x', sizeof text - 1);
    int kept = redirect(path);
    FL_INFO("%s", text);
    read_back(kept, path, &s);
    CHECK_INT((int64_t)s.n, FL_LOG_LINE);
    CHECK(fl_ends_with(s.at, "xx\n"));
    fl_str_fini(&s);
}

static void write_lines(void *arg)
{
    for (int i = 0; i < 100; i++)
        FL_INFO("%s%s%s", (char *)arg, (char *)arg, (char *)arg);
}

static void lines_of_threads_never_mix(void)
{
    char path[300];
    fl_pool *p;
    fl_group g = {0};
    fl_str s = {0};
    int kept = redirect(path), lines = 0;
    CHECK_OK(fl_pool_new("log", 4, &p));
    for (int i = 0; i < 4; i++)
        fl_pool_submit(p, &g, write_lines, (char *[]){"a", "b", "c", "d"}[i]);
    CHECK_OK(fl_pool_wait(p, &g, -1));
    fl_pool_free(p);
    read_back(kept, path, &s);
    for (char *at = strtok(s.at, "\n"); at; at = strtok(NULL, "\n"), lines++) {
        const char *text = strstr(at, "] ");
        CHECK(at[0] == 'I' && text && strlen(text) == 5);
        CHECK(text[2] == text[3] && text[3] == text[4]);
    }
    CHECK_INT(lines, 400);
    fl_str_fini(&s);
}

const fl_test fl_tests[] = {
    {"log line has the shape of glog", line_has_the_shape_of_glog},
    {"log level comes from three variables", level_comes_from_three_variables},
    {"log writes to stderr and keeps errno",
     log_writes_to_stderr_and_keeps_errno},
    {"long log lines are cut", long_lines_are_cut},
    {"log lines of threads never mix", lines_of_threads_never_mix},
    {0},
};
