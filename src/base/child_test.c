/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include "base/clock.h"
#include "base/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run to the end with `text` on stdin; what came out. */
static fl_err run(const char *command, const char *text, fl_str *out)
{
    int in[2];
    fl_child *c;
    char buf[1000];
    size_t got = 1;
    CHECK_INT(pipe2(in, O_CLOEXEC), 0);
    CHECK_INT(write(in[1], text, strlen(text)), (int64_t)strlen(text));
    close(in[1]);
    CHECK_OK(fl_child_new(command, in[0], &c));
    close(in[0]);
    fl_err err = FL_OK;
    while (got && !err) {
        err = fl_child_read(c, buf, sizeof buf, -1, -1, &got);
        fl_str_bytes(out, buf, got);
    }
    fl_child_free(c);
    return err;
}

static void gives_its_output(void)
{
    fl_str out = {0};
    CHECK_OK(run("tr a-z A-Z", "some text\n", &out));
    CHECK_STR(out.at, "SOME TEXT\n");
    fl_str_fini(&out);
}

static void says_how_it_failed(void)
{
    fl_str out = {0};
    CHECK_ERR(run("echo one; echo no such thing >&2; exit 3", "", &out), FL_EIO,
              "ended with code 3; its last output: no such thing");
    CHECK_STR(out.at, "one\n");
    CHECK_ERR(run("kill -9 $$", "", &out), FL_EIO,
              "ended by signal 9 (Killed)");
    CHECK_ERR(run("no-such-command-here", "", &out), FL_EIO, "code 127");
    CHECK_ERR(run("exit 1", "", &out), FL_EIO, "and wrote nothing to stderr");
    fl_str_fini(&out);
}

static void last_words_are_few(void)
{
    fl_str out = {0};
    CHECK_ERR(run("printf '1\\n2\\n3\\n4\\n\\n' >&2; exit 1", "", &out), FL_EIO,
              "its last output: 2 3 4");
    CHECK_ERR(run("printf 'a\\0b\\tc' >&2; exit 1", "", &out), FL_EIO,
              "its last output: a b c");
    /* of a long line its end, from a whole character on */
    CHECK_ERR(run("yes \303\244 | head -500 | tr -d '\\n' >&2; echo x >&2; "
                  "exit 1",
                  "", &out),
              FL_EIO, "its last output: \303\244");
    fl_str_fini(&out);
}

static void flood_does_no_harm(void)
{
    fl_str out = {0};
    CHECK_ERR(run("yes flood | head -c 3000000 >&2; echo the end >&2; echo out;"
                  "exit 1",
                  "", &out),
              FL_EIO, "the end");
    CHECK_STR(out.at, "out\n");
    CHECK(strlen(fl_errmsg()) < 700);
    fl_str_fini(&out);
}

static void hashes_alike(void)
{
    fl_str out = {0};
    CHECK_OK(run("echo $PYTHONHASHSEED", "", &out));
    const char *own = getenv("PYTHONHASHSEED");
    CHECK_INT(out.at[0], own ? own[0] : '0');
    fl_str_fini(&out);
}

static fl_child *started(const char *command)
{
    fl_child *c;
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_OK(fl_child_new(command, in, &c));
    close(in);
    return c;
}

static void hanging_one_is_cancelled(void)
{
    char buf[64];
    size_t got;
    fl_child *c = started("sleep 600");
    const int cancel = eventfd(1, EFD_CLOEXEC);
    CHECK_ERR(fl_child_read(c, buf, sizeof buf, cancel, -1, &got), FL_EINTR,
              "\"sleep 600\" was cancelled");
    fl_child_free(c);
    close(cancel);
}

enum {
    MOMENT = 50 * 1000 * 1000 /* ns */
};

/* It writes nothing, and this is said of it. */
static void says_so(const char *command, int64_t timeout, fl_err code,
                    const char *sentence)
{
    char buf[64];
    size_t got;
    fl_child *c = started(command);
    CHECK_ERR(fl_child_read(c, buf, sizeof buf, -1, timeout, &got), code,
              sentence);
    CHECK_INT(got, 0);
    fl_child_free(c);
}

/* Closes its stdout and goes on: that is not its end. */
static void one_that_closes_its_output_is_waited_for(void)
{
    says_so("exec >&-; sleep 0.05; exit 4", -1, FL_EIO, "code 4");
}

/* It is silent, and after some looks this is said of it. */
static void comes_to(const char *command, const char *sentence)
{
    char buf[64];
    size_t got;
    fl_child *c = started(command);
    fl_err err;
    do
        err = fl_child_read(c, buf, sizeof buf, -1, 1000000, &got);
    while (err == FL_ETIMEOUT && !strstr(fl_errmsg(), sentence));
    CHECK_ERR(err, FL_ETIMEOUT, sentence);
    fl_child_free(c);
}

static void silence_has_a_limit(void)
{
    says_so("sleep 600", MOMENT, FL_ETIMEOUT, "\"sleep 600\" writes nothing");
    says_so("yes flood >&2", MOMENT, FL_ETIMEOUT, "writes nothing");
    comes_to("exec >&-; sleep 600", "has closed its output and does not end");
}

/* It may be read on after a while without bytes. */
static void slow_one_is_read_on(void)
{
    char buf[64] = {0};
    size_t got = 0;
    fl_err err = FL_ETIMEOUT;
    fl_child *c = started("sleep 0.05; echo late");
    for (int i = 0; i < 300000 && err == FL_ETIMEOUT; i++)
        err = fl_child_read(c, buf, sizeof buf - 1, -1, 1000000, &got);
    CHECK_OK(err);
    CHECK_STR(buf, "late\n");
    fl_child_free(c);
}

/* What it started has its stdout and stays; its own end tells. */
static void children_that_stay_hide_no_failure(void)
{
    says_so("sleep 600 & exit 3", -1, FL_EIO, "ended with code 3");
    comes_to("sleep 600 & exit 0", "has ended, but what it started keeps its "
                                   "output open");
}

/* Nobody, or a zombie: where no init reaps, an orphan stays one. */
static bool is_dead(pid_t pid)
{
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    const bool known = fscanf(f, "%*d %*s %c", &state) == 1;
    fclose(f);
    return known && (state == 'Z' || state == 'X');
}

static bool dies(pid_t pid)
{
    const fl_clock *clock = fl_clock_real();
    const int64_t end = fl_clock_now(clock) + 300 * FL_SEC;
    while (!is_dead(pid) && fl_clock_now(clock) < end)
        usleep(1000);
    return is_dead(pid);
}

static void grandchildren_end_with_it(void)
{
    char buf[64] = {0};
    size_t got;
    fl_child *c = started("sleep 600 & echo $!; sleep 600");
    CHECK_OK(fl_child_read(c, buf, sizeof buf - 1, -1, -1, &got));
    const pid_t grandchild = (pid_t)atoi(buf);
    CHECK(grandchild > 1 && !is_dead(grandchild));
    fl_child_free(c);
    CHECK(dies(grandchild));
}

/* Who is killed frees nothing. */
static void one_that_is_killed_takes_it_along(void)
{
    int tell[2];
    pid_t grandchild = 0;
    CHECK_INT(pipe2(tell, O_CLOEXEC), 0);
    const pid_t killed = fork();
    if (!killed) {
        char buf[64] = {0};
        size_t got;
        fl_child *c = started("sleep 600 & echo $!; sleep 600");
        const fl_err err = fl_child_read(c, buf, sizeof buf - 1, -1, -1, &got);
        const pid_t pid = err ? 0 : (pid_t)atoi(buf);
        if (write(tell[1], &pid, sizeof pid) == sizeof pid)
            raise(SIGKILL);
        _exit(1);
    }
    CHECK_INT(read(tell[0], &grandchild, sizeof grandchild), sizeof grandchild);
    CHECK_INT(waitpid(killed, NULL, 0), killed);
    CHECK(grandchild > 1 && dies(grandchild));
    close(tell[0]);
    close(tell[1]);
}

/* The command kills the process that starts it as soon as it can. It holds one
 * end of a pipe, which closes when it dies. */
static void one_that_is_killed_at_once_takes_it_along(void)
{
    for (int i = 0; i < 5; i++) { /* each may find a gap */
        int held[2];
        CHECK_INT(pipe2(held, 0), 0);
        const pid_t killed = fork();
        if (!killed) {
            started("kill -9 $PPID; exec sleep 600");
            pause();
        }
        close(held[1]);
        CHECK_INT(waitpid(killed, NULL, 0), killed);
        struct pollfd end = {.fd = held[0], .events = POLLIN};
        CHECK_INT(poll(&end, 1, 10000), 1);
        close(held[0]);
    }
}

const fl_test fl_tests[] = {
    {"child gives its output", gives_its_output},
    {"child that fails says how", says_how_it_failed},
    {"child has few last words", last_words_are_few},
    {"child that floods stderr does no harm", flood_does_no_harm},
    {"child has a hash seed", hashes_alike},
    {"child that hangs is cancelled", hanging_one_is_cancelled},
    {"child that closes its output is waited for",
     one_that_closes_its_output_is_waited_for},
    {"child may be silent for so long", silence_has_a_limit},
    {"child that is slow is read on", slow_one_is_read_on},
    {"child that failed is told in spite of its children",
     children_that_stay_hide_no_failure},
    {"child takes its own children along", grandchildren_end_with_it},
    {"child ends with a process that is killed",
     one_that_is_killed_takes_it_along},
    {"child ends with a process that it kills at once",
     one_that_is_killed_at_once_takes_it_along},
    {0},
};
