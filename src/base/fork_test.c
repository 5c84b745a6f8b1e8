/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fork.h"

#include "base/test.h"

#include <sys/wait.h>
#include <unistd.h>

/* Whether a child of a child, or of this process, has lost the mark. */
static bool is_lost_in_child(const fl_fork_mark *m, int generations)
{
    int status = -1;
    const pid_t child = fork();
    if (!child)
        _exit(generations > 1 ? is_lost_in_child(m, generations - 1)
                              : fl_fork_mark_is_lost(m));
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void a_child_has_lost_the_mark(void)
{
    fl_fork_mark *m = fl_fork_mark_new();
    CHECK(!fl_fork_mark_is_lost(m));
    CHECK(is_lost_in_child(m, 1));
    CHECK(is_lost_in_child(m, 2));
    CHECK(!fl_fork_mark_is_lost(m));
    fl_fork_mark_free(m);
}

/* The mark of a child is its own; its parent's is lost. */
static void a_child_makes_a_mark_of_its_own(void)
{
    int status = -1;
    fl_fork_mark *m = fl_fork_mark_new();
    const pid_t child = fork();
    if (!child) {
        fl_fork_mark *own = fl_fork_mark_new();
        _exit(fl_fork_mark_is_lost(m) && !fl_fork_mark_is_lost(own));
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    fl_fork_mark_free(m);
}

const fl_test fl_tests[] = {
    {"fork: a child has lost the mark", a_child_has_lost_the_mark},
    {"fork: a child makes a mark of its own", a_child_makes_a_mark_of_its_own},
    {0},
};
