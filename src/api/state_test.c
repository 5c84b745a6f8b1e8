/* SPDX-License-Identifier: Apache-2.0 */
#include "fluid.h"

#include "base/disk.h"
#include "state/test_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void states_are_listed_and_removed(void)
{
    char *text, path[512];
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    CHECK_OK(fl_state_list(&text));
    CHECK_STR(text, "");
    fl_free(text);
    fl_statedir *d = test_state();
    fl_statedir_ready(d);
    snprintf(path, sizeof path, "%s", fl_statedir_path(d));
    fl_statedir_close(d);
    CHECK_OK(fl_state_list(&text));
    CHECK(strstr(text, "server 0 of job 001122334455, "));
    CHECK(strstr(text, "held by nobody; "));
    CHECK(strstr(text, path));
    fl_free(text);
    CHECK_OK(fl_state_remove(path));
    CHECK_OK(fl_state_list(&text));
    CHECK_STR(text, "");
    fl_free(text);
    CHECK_ERR(fl_state_remove(path), FL_ENOENT,
              "server-0 does not exist; paddle state ls lists the states and "
              "journals");
}

/* A server was killed while it removed its state. */
static void the_rest_of_a_state_is_listed_and_removed(void)
{
    char *text, path[512], line[1100];
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    fl_statedir *d = test_state();
    fl_mapping *m;
    CHECK_OK(fl_statedir_map(d, "dense", 100, 0, &m));
    fl_mapping_unref(m);
    fl_statedir_drop(d, "head");
    snprintf(path, sizeof path, "%s", fl_statedir_path(d));
    fl_statedir_close(d);
    CHECK_OK(fl_state_list(&text));
    snprintf(line, sizeof line,
             "%s: the rest of a state: its server was killed while it made or "
             "removed it, ",
             path);
    CHECK(fl_starts_with(text, line));
    snprintf(line, sizeof line,
             " bytes, held by nobody; paddle state rm %s discards it\n", path);
    CHECK(fl_ends_with(text, line));
    fl_free(text);
    snprintf(line, sizeof line, "%s/", path); /* a shell completes it so */
    CHECK_OK(fl_state_remove(line));
    CHECK_OK(fl_state_list(&text));
    CHECK_STR(text, "");
    fl_free(text);
}

/* The error names what the user gave. */
static void other_paths_are_not_removed(void)
{
    char path[512], sentence[1024];
    snprintf(path, sizeof path, "%s/other", fl_test_dir());
    CHECK(!mkdir(path, 0700));
    snprintf(sentence, sizeof sentence,
             "%s is neither the state nor the journal of a server; paddle "
             "state ls",
             path);
    CHECK_ERR(fl_state_remove(path), FL_EINVAL, sentence);
    snprintf(path, sizeof path, "%s/other/head", fl_test_dir());
    CHECK_OK(fl_disk_write(fl_disk_real(), path, "text", 4, false));
    *strrchr(path, '/') = 0;
    CHECK_ERR(fl_state_remove(path), FL_EINVAL, sentence);
    snprintf(path, sizeof path, "%s/other/head", fl_test_dir());
    CHECK_ERR(fl_state_remove(path), FL_EIO,
              "/other/head: cannot list it: Not a directory (paddle state ls "
              "lists");
    CHECK_OK(fl_disk_real()->remove(fl_disk_real(), path));
    snprintf(path, sizeof path, "%s/other/base", fl_test_dir());
    CHECK(!mkdir(path, 0700)); /* a journal has one, too */
    *strrchr(path, '/') = 0;
    CHECK_ERR(fl_state_remove(path), FL_EINVAL, sentence);
}

/* A folder as redo.h describes it. */
static void make_journal(const fl_statedir *d, const char *path)
{
    char line[2048];
    snprintf(line, sizeof line,
             "mkdir -p %s && cp -r %s %s/base && echo 12345 > %s/journal-1-0",
             path, fl_statedir_path(d), path, path);
    CHECK_INT(system(line), 0);
}

static void journals_are_listed_and_removed(void)
{
    char *text, path[600], other[512];
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    snprintf(other, sizeof other, "%s/journals", fl_test_dir());
    setenv("FLUID_JOURNAL_DIR", other, 1);
    snprintf(path, sizeof path, "%s/001122334455-server-0", other);
    fl_statedir *d = test_state();
    fl_statedir_ready(d);
    make_journal(d, path);
    fl_statedir_remove(d);
    fl_statedir_close(d);
    CHECK_OK(fl_state_list(&text));
    CHECK(strstr(text, "/journals/001122334455-server-0: journal of server 0 "
                       "of job 001122334455, "));
    CHECK(strstr(text, "held by nobody; "));
    fl_free(text);
    CHECK_ERR(fl_state_remove(other), FL_EINVAL, "/journals is neither");
    CHECK_OK(fl_state_remove(path));
    CHECK_OK(fl_state_list(&text));
    CHECK_STR(text, "");
    fl_free(text);
}

/* Another process holds it; who asks has the record lock's view of it. */
static void hold_state(bool ready)
{
    char *text, path[512];
    int up[2], down[2];
    char byte = 0;
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    CHECK(!pipe(up) && !pipe(down));
    const pid_t pid = fork();
    if (!pid) {
        fl_statedir *d = test_state();
        if (ready)
            fl_statedir_ready(d);
        (void)!write(up[1], "x", 1);
        (void)!read(down[0], &byte, 1);
        fl_statedir_remove(d);
        fl_statedir_close(d);
        _exit(0);
    }
    CHECK_INT(read(up[0], &byte, 1), 1);
    snprintf(path, sizeof path, "%s/001122334455-server-0", fl_test_dir());
    CHECK_OK(fl_state_list(&text));
    CHECK(strstr(text, "held by process "));
    fl_free(text);
    CHECK_ERR(fl_state_remove(path), FL_EINVAL, "is held by process ");
    snprintf(path, sizeof path, "%s/held/001122334455-server-0/journal-1-0",
             fl_test_dir());
    CHECK_OK(fl_disk_make_parents(fl_disk_real(), path));
    CHECK_OK(fl_disk_write(fl_disk_real(), path, "text", 4, false));
    strrchr(path, '/')[1] = 0; /* a shell completes it so */
    CHECK_ERR(fl_state_remove(path), FL_EINVAL, "is held by process ");
    CHECK_INT(write(down[1], "x", 1), 1);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static void a_state_that_is_held_is_not_removed(void)
{
    hold_state(true);
}

/* As while a server makes its state again from the journal. */
static void so_it_is_with_one_that_is_not_complete(void)
{
    hold_state(false);
}

const fl_test fl_tests[] = {
    {"states are listed and removed", states_are_listed_and_removed},
    {"the rest of a state is listed and removed",
     the_rest_of_a_state_is_listed_and_removed},
    {"paths that are no states are not removed", other_paths_are_not_removed},
    {"journals are listed and removed", journals_are_listed_and_removed},
    {"a state that is held is not removed",
     a_state_that_is_held_is_not_removed},
    {"nor is the journal of a state that is being made",
     so_it_is_with_one_that_is_not_complete},
    {0},
};
