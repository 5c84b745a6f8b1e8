/* SPDX-License-Identifier: Apache-2.0 */
/* test_state.h - a state directory below the test's own. Tests only. */
#ifndef FL_STATE_TEST_STATE_H
#define FL_STATE_TEST_STATE_H

#include "base/failpoint.h"
#include "base/test.h"
#include "state/statedir.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_JOB "00112233445566778899aabbccddeeff"

static inline fl_statedir_opts test_state_opts(void)
{
    return (fl_statedir_opts){.base = fl_test_dir(),
                              .job = TEST_JOB,
                              .owners = 1,
                              .id = 7,
                              .need = 1 << 20};
}

static inline fl_statedir *test_state(void)
{
    const fl_statedir_opts o = test_state_opts();
    fl_statedir *d = NULL;
    CHECK_OK(fl_statedir_open(&o, &d));
    return d;
}

/* From now on no file of this process grows beyond so many bytes, as if the
 * file system were full; -1: as far as it has room. */
static inline void test_limit_files(int64_t bytes)
{
    struct rlimit files;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &files), 0);
    files.rlim_cur = bytes < 0 ? files.rlim_max : (rlim_t)bytes;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &files), 0);
}

/* Run fn in a process of its own that is killed at a failpoint ("": at none).
 * Whether it was killed. */
static inline bool test_kill_at(const char *failpoint, void (*fn)(void *),
                                void *arg)
{
    int status = 0;
    fl_test_dir(); /* both processes use the same */
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        fl_failpoint_arm(failpoint);
        fn(arg);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                              : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

#endif
