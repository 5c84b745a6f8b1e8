/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include "base/test.h"

#include <unistd.h>

/* Before any file is given: the count goes nowhere, and it stays so. */
static void a_file_that_is_not_the_launchers_is_left_alone(void)
{
    int pipes[2], fd;
    char byte = 0;
    CHECK(!pipe(pipes));
    CHECK_INT(dup2(pipes[1], FL_PROGRESS_FD), FL_PROGRESS_FD);
    fl_progress_step();
    fl_progress_reach(FL_REACHED_EXIT);
    close(pipes[1]);
    close(FL_PROGRESS_FD);
    CHECK_INT(read(pipes[0], &byte, 1), 0);
    close(pipes[0]);
    fl_progress_page *p = fl_progress_new(20, &fd);
    CHECK(p && fd >= 20);
    CHECK_INT(fl_count_get(&p->steps), 0);
    CHECK_INT(fl_count_get(&p->reached), 0);
    close(fd);
    fl_progress_free(p);
}

const fl_test fl_tests[] = {
    {"a file that is not the launcher's is left alone",
     a_file_that_is_not_the_launchers_is_left_alone},
    {0},
};
