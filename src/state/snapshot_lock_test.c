/* SPDX-License-Identifier: Apache-2.0 */
#include "state/snapshot_lock.h"

#include "base/mem.h"
#include "base/path.h"
#include "base/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What another process gets that tries to take the lock: 0, or an fl_err; it
 * names the process that has it. */
static int try_elsewhere(const char *base, pid_t holder)
{
    int status = 0;
    char text[64];
    snprintf(text, sizeof text, "where process %d writes", (int)holder);
    const pid_t pid = fork();
    if (!pid) {
        fl_snapshot_lock l;
        for (int fd = 3; fd < 256; fd++)
            close(fd); /* as in a program that was started */
        const fl_err err = fl_snapshot_lock_init(&l, base, 0);
        _exit(err && !strstr(fl_errmsg(), text) ? 99 : (int)err);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void jobs_of_one_process_are_told_apart(void)
{
    char *base = fl_path_join(fl_test_dir(), "new/folder"), text[64];
    fl_snapshot_lock one, two;
    snprintf(text, sizeof text, "process %d writes the snapshots of another",
             (int)getpid());
    CHECK_OK(fl_snapshot_lock_init(&one, base, 0));
    for (int i = 0; i < 2; i++) {
        CHECK_ERR(fl_snapshot_lock_init(&two, base, 0), FL_ETIMEOUT, text);
        CHECK_INT(try_elsewhere(base, getpid()), FL_ETIMEOUT); /* still held */
    }
    fl_snapshot_lock_fini(&one);
    CHECK_INT(try_elsewhere(base, getpid()), FL_OK);
    CHECK_OK(fl_snapshot_lock_init(&two, base, 0));
    CHECK_INT(try_elsewhere(base, getpid()), FL_ETIMEOUT);
    fl_snapshot_lock_fini(&two);
    fl_mem_free(base);
}

/* A process that has forked a child is killed, and the child lives on. */
static void a_child_that_lives_on_has_no_lock(void)
{
    char *base = fl_path_join(fl_test_dir(), "snap");
    int pipes[2], status;
    fl_snapshot_lock l;
    CHECK_INT(pipe(pipes), 0);
    const pid_t pid = fork();
    if (!pid) {
        char byte;
        if (fl_snapshot_lock_init(&l, base, 0))
            _exit(1);
        if (!fork()) {
            close(pipes[1]);
            _exit(read(pipes[0], &byte, 1) < 0);
        }
        raise(SIGKILL);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
    CHECK_OK(fl_snapshot_lock_init(&l, base, 0));
    CHECK_INT(try_elsewhere(base, getpid()), FL_ETIMEOUT);
    fl_snapshot_lock two;
    CHECK_ERR(fl_snapshot_lock_init(&two, base, 0), FL_ETIMEOUT, "process");
    fl_snapshot_lock_fini(&l);
    close(pipes[0]);
    close(pipes[1]);
    fl_mem_free(base);
}

static void a_folder_that_cannot_be_written_has_no_lock(void)
{
    fl_snapshot_lock l;
    CHECK_OK(fl_snapshot_lock_init(&l, "/proc/none", 0));
    CHECK_INT(l.file, -1);
    fl_snapshot_lock_fini(&l);
}

const fl_test fl_tests[] = {
    {"two jobs of one process do not share a directory of snapshots",
     jobs_of_one_process_are_told_apart},
    {"a child that outlives a server does not hold its snapshots",
     a_child_that_lives_on_has_no_lock},
    {"a folder that cannot be written has no lock",
     a_folder_that_cannot_be_written_has_no_lock},
    {0},
};
