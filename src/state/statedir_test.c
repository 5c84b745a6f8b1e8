/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "state/test_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void a_state_outlives_its_process(void)
{
    fl_mapping *m;
    fl_statedir *d = test_state();
    CHECK(!fl_statedir_found(d));
    CHECK_INT(fl_statedir_incarnation(d), 1);
    CHECK_OK(fl_statedir_map(d, "dense", 100, 0, &m));
    strcpy(fl_mapping_at(m), "kept");
    fl_statedir_ready(d);
    fl_mapping_unref(m);
    fl_statedir_close(d);

    d = test_state();
    CHECK(fl_statedir_found(d));
    CHECK_INT(fl_statedir_incarnation(d), 2);
    CHECK_INT((int64_t)fl_statedir_id(d), 7);
    CHECK_OK(fl_statedir_map(d, "dense", 100, 0, &m));
    CHECK_STR(fl_mapping_at(m), "kept");
    CHECK_ERR(fl_statedir_map(d, "dense", 200, 0, &m), FL_EINVAL,
              "has 100 bytes, expected 200 or more");
    fl_mapping_unref(m);
    fl_statedir_remove(d);
    CHECK(!fl_statedir_exists(d));
    CHECK(access(fl_statedir_path(d), F_OK));
    fl_statedir_close(d);
}

static void an_incomplete_state_is_made_anew(void)
{
    fl_mapping *m;
    fl_statedir *d = test_state();
    CHECK_OK(fl_statedir_map(d, "dense", 100, 0, &m));
    strcpy(fl_mapping_at(m), "half");
    fl_mapping_unref(m);
    fl_statedir_close(d);
    d = test_state();
    CHECK(!fl_statedir_found(d));
    CHECK_INT(fl_statedir_incarnation(d), 1);
    CHECK_OK(fl_statedir_map(d, "dense", 100, 0, &m));
    CHECK_STR(fl_mapping_at(m), "");
    fl_mapping_unref(m);
    fl_statedir_close(d);
}

/* The copy of a complete state: its head, and a file that lacks a push. */
static fl_err fill(void *self, const char *name, const char *path, bool *filled)
{
    char to[512];
    CHECK_STR(name, "001122334455-server-0");
    snprintf(to, sizeof to, "%s/head", path);
    FILE *f = fopen(to, "w");
    CHECK(f && fwrite(self, 4096, 1, f) == 1);
    fclose(f);
    *filled = true;
    return FL_OK;
}

static void a_state_that_is_filled_is_complete_when_it_is_told(void)
{
    static char head[4096];
    fl_statedir_opts o = test_state_opts();
    fl_statedir_info info;
    fl_statedir *d = test_state();
    char path[512];
    fl_statedir_ready(d);
    snprintf(path, sizeof path, "%s/head", fl_statedir_path(d));
    FILE *f = fopen(path, "r");
    CHECK(f && fread(head, sizeof head, 1, f) == 1);
    fclose(f);
    fl_statedir_remove(d);
    fl_statedir_close(d);
    o.fill = fill;
    o.fill_self = head;
    for (int i = 0; i < 2; i++) { /* the first process is killed */
        CHECK_OK(fl_statedir_open(&o, &d));
        CHECK(fl_statedir_found(d));
        CHECK_INT(fl_statedir_incarnation(d), 2);
        CHECK_OK(fl_statedir_look(fl_statedir_path(d), &info));
        CHECK(!info.ready && !fl_statedir_waits(&o));
        if (i)
            fl_statedir_ready(d);
        fl_statedir_close(d);
    }
    d = test_state();
    CHECK(fl_statedir_found(d));
    CHECK_INT(fl_statedir_incarnation(d), 3);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

/* The journal's directory is refused, or the copy in it is damaged. */
static fl_err refuse_fill(void *self, const char *name, const char *path,
                          bool *filled)
{
    return fl_fail(FL_EINVAL, "the journal is refused");
}

static void a_state_that_cannot_be_filled_leaves_nothing(void)
{
    fl_statedir_opts o = test_state_opts();
    fl_statedir *d;
    char path[512];
    o.fill = refuse_fill;
    CHECK_ERR(fl_statedir_open(&o, &d), FL_EINVAL, "the journal is refused");
    snprintf(path, sizeof path, "%s/001122334455-server-0", o.base);
    CHECK(access(path, F_OK));
    d = test_state();
    fl_statedir_ready(d);
    fl_statedir_close(d);
    CHECK_OK(fl_statedir_open(&o, &d)); /* one that is complete is not filled */
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

static void a_state_with_a_name_is_found_without_its_job(void)
{
    fl_statedir_opts o = test_state_opts();
    fl_statedir *d;
    char *path;
    setenv("FLUID_STATE_DIR", o.base, 1);
    o.name = "pserver-host:7164";
    o.existing = true;
    CHECK_ERR(fl_statedir_find(o.name, &path), FL_ENOENT,
              "there is no state pserver-host:7164");
    CHECK_ERR(fl_statedir_open(&o, &d), FL_ENOENT, "has no state any more");
    o.existing = false;
    CHECK_OK(fl_statedir_open(&o, &d));
    CHECK(fl_statedir_find(o.name, &path) == FL_ENOENT); /* not complete */
    fl_statedir_ready(d);
    fl_statedir_close(d);
    CHECK_OK(fl_statedir_find(o.name, &path));
    o.existing = true;
    CHECK_OK(fl_statedir_open(&o, &d));
    CHECK_STR(path, fl_statedir_path(d));
    fl_statedir_remove(d);
    fl_statedir_close(d);
    fl_mem_free(path);
    unsetenv("FLUID_STATE_DIR");
}

static void a_state_waits_for_its_server_alone(void)
{
    fl_statedir_opts o = test_state_opts();
    CHECK(!fl_statedir_waits(&o)); /* there is none */
    fl_statedir *d = test_state();
    CHECK(!fl_statedir_waits(&o)); /* it is not complete */
    fl_statedir_ready(d);
    fl_statedir_close(d);
    CHECK(fl_statedir_waits(&o));
    o.owners = 3;
    CHECK(!fl_statedir_waits(&o));
    o.owners = 1;
    o.job = "00112233445566778899aabbccddee00"; /* the same first digits */
    CHECK(!fl_statedir_waits(&o));
    o.job = TEST_JOB;
    d = test_state();
    CHECK(fl_statedir_found(d)); /* asking changes nothing */
    CHECK(!fl_statedir_is_over(d));
    fl_statedir_set_over(d, true);
    fl_statedir_close(d);
    CHECK(!fl_statedir_waits(&o));
    d = test_state();
    CHECK(fl_statedir_is_over(d));
    fl_statedir_set_over(d, false);
    fl_statedir_close(d);
    CHECK(fl_statedir_waits(&o));
    d = test_state();
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

static void a_foreign_state_is_refused(void)
{
    fl_statedir_opts o = test_state_opts();
    fl_statedir *d = test_state(), *other;
    struct stat st;
    fl_statedir_ready(d);
    CHECK(!stat(fl_statedir_path(d), &st));
    CHECK_INT(st.st_mode & 0777, 0700);
    fl_statedir_close(d);
    o.owners = 3;
    CHECK_ERR(fl_statedir_open(&o, &other), FL_EINVAL,
              "it was made with 1 owner threads; FLUID_OWNERS is now 3");
    o.owners = 1;
    o.job = "00112233445566778899aabbccddee00"; /* the same first digits */
    CHECK_ERR(fl_statedir_open(&o, &other), FL_EINVAL,
              "remove it with `paddle state rm ");
    d = test_state(); /* it is still there */
    CHECK(fl_statedir_found(d));
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

static void a_state_that_does_not_fit_is_refused(void)
{
    fl_statedir_opts o = test_state_opts();
    fl_statedir *d;
    o.need = (size_t)1 << 60;
    CHECK_ERR(fl_statedir_open(&o, &d), FL_ENOMEM,
              "the state of server 0 needs 1152921504606846976 bytes; ");
}

/* Hold the state until the other end of the pipe is closed. */
static void hold_state(void *arg)
{
    const int *pipes = arg; /* to the test, from the test */
    char byte = 'x';
    fl_statedir *d = test_state();
    fl_statedir_ready(d);
    if (write(pipes[1], &byte, 1) != 1 || read(pipes[2], &byte, 1) != 0)
        _exit(1);
    fl_statedir_close(d);
}

static void the_holder_of_a_state_is_named(void)
{
    fl_statedir_opts o = test_state_opts();
    fl_statedir_info info;
    fl_statedir *d;
    int up[2], down[2], status;
    char byte, text[64];
    CHECK(!pipe(up) && !pipe(down));
    fl_test_dir();
    const pid_t pid = fork();
    if (!pid) {
        close(down[1]);
        hold_state((int[]){up[0], up[1], down[0]});
        _exit(0);
    }
    CHECK_INT(read(up[0], &byte, 1), 1);
    snprintf(text, sizeof text, "is held by process %d (", (int)pid);
    CHECK_ERR(fl_statedir_open(&o, &d), FL_ETIMEOUT, text);
    char path[512];
    snprintf(path, sizeof path, "%s/%.12s-server-0", fl_test_dir(), TEST_JOB);
    CHECK_OK(fl_statedir_look(path, &info));
    CHECK_INT(info.pid, pid);
    CHECK_STR(info.job, TEST_JOB);
    CHECK(info.ready && info.bytes > 0 && info.command[0]);
    CHECK(!fl_statedir_waits(&o));
    close(down[1]);
    close(down[0]);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    close(up[0]);
    close(up[1]);
    d = test_state();
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

/* A child that is forked holds nothing of the state and lives on. */
static void hold_and_fork(void *arg)
{
    fl_statedir *d = test_state();
    fl_statedir_ready(d);
    if (!fork()) {
        char byte;
        close(((int *)arg)[1]);
        if (read(((int *)arg)[0], &byte, 1) < 0)
            _exit(1);
        _exit(0);
    }
    raise(SIGKILL);
}

static void a_child_that_lives_on_does_not_hold_the_state(void)
{
    int pipes[2];
    CHECK(!pipe(pipes));
    CHECK(test_kill_at(NULL, hold_and_fork, pipes));
    fl_statedir *d = test_state();
    CHECK(fl_statedir_found(d));
    close(pipes[0]);
    close(pipes[1]);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

static void memory_grows_in_place_and_names_a_full_directory(void)
{
    fl_statedir *d = test_state();
    fl_mapping *m;
    CHECK_OK(fl_statedir_map(d, "dense", 100, 1 << 20, &m));
    char *at = fl_mapping_at(m);
    at[99] = 'a';
    CHECK_OK(fl_mapping_grow(m, 1 << 20));
    at[(1 << 20) - 1] = 'b';
    CHECK(fl_mapping_at(m) == at && at[99] == 'a');
    CHECK_ERR(fl_mapping_grow(m, 2 << 20), FL_ENOMEM, "at most 1048576");
    fl_mapping_unref(m);
    CHECK_ERR(fl_statedir_map(d, "slots", (size_t)1 << 60, 0, &m), FL_ENOMEM,
              "no room for 1152921504606846976 bytes more");
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

static void room_that_no_byte_has_is_not_counted(void)
{
    enum {
        FAR = 16 << 20
    };
    fl_mapping *m;
    fl_statedir_info info;
    fl_statedir *d = test_state();
    CHECK_OK(fl_statedir_map(d, "dense", 4096, 2 * FAR, &m));
    CHECK_OK(fl_mapping_extend(m, FAR, FAR + 4096));
    CHECK_INT((int64_t)fl_mapping_size(m), FAR + 4096);
    ((char *)fl_mapping_at(m))[FAR + 4095] = 1;
    CHECK_OK(fl_statedir_look(fl_statedir_path(d), &info));
    CHECK(info.bytes >= 2 * 4096 && info.bytes < FAR);
    CHECK_ERR(fl_mapping_extend(m, FAR, 3 * FAR), FL_ENOMEM, "at most");
    fl_mapping_unref(m);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

static void a_launcher_removes_what_its_servers_left(void)
{
    char path[512];
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    setenv("FLUID_JOB", "12.34", 1);
    fl_statedir *d = test_state();
    unsetenv("FLUID_JOB");
    snprintf(path, sizeof path, "%s", fl_statedir_path(d));
    fl_statedir_close(d);
    fl_statedir_sweep("12.35");
    CHECK(!access(path, F_OK));
    fl_statedir_sweep("12.34");
    CHECK(access(path, F_OK));
    unsetenv("FLUID_STATE_DIR");
}

static void rubbish_is_no_state(void)
{
    char path[512], file[600];
    fl_statedir_info info;
    snprintf(path, sizeof path, "%s/odd", fl_test_dir());
    CHECK_ERR(fl_statedir_look(path, &info), FL_ENOENT, "cannot open it");
    CHECK(!mkdir(path, 0700));
    snprintf(file, sizeof file, "%s/head", path);
    const int fd = open(file, O_WRONLY | O_CREAT, 0600);
    CHECK_INT(write(fd, "FLSTAT?", 7), 7);
    close(fd);
    CHECK_ERR(fl_statedir_look(path, &info), FL_EINVAL,
              "is not the state of a server");
}

/* One directory below the test's own, which is emptied by hand. */
static void make_folder(const char *name, const char *file, char path[512])
{
    char at[600];
    snprintf(path, 512, "%s/%s", fl_test_dir(), name);
    CHECK(!mkdir(path, 0700));
    snprintf(at, sizeof at, "%s/%s", path, file);
    if (*file)
        close(open(at, O_WRONLY | O_CREAT, 0600));
}

static void what_is_left_of_a_state_is_discarded(void)
{
    fl_mapping *m;
    fl_statedir_info info;
    char path[512];
    fl_statedir *d = test_state();
    CHECK_OK(fl_statedir_map(d, "dense", 100, 0, &m));
    fl_mapping_unref(m);
    CHECK_OK(fl_statedir_map(d, "extent-12", 100, 0, &m));
    fl_mapping_unref(m);
    fl_statedir_ready(d);
    snprintf(path, sizeof path, "%s", fl_statedir_path(d));
    CHECK_ERR(fl_statedir_look_at_rest(path, &info), FL_EINVAL,
              "is not the state of a server"); /* it is a whole one */
    fl_statedir_drop(d, "head");
    fl_statedir_close(d);
    CHECK_OK(fl_statedir_look_at_rest(path, &info));
    CHECK(info.bytes > 0 && !info.pid && info.command[0]);
    CHECK_OK(fl_statedir_discard(path));
    CHECK(access(path, F_OK));
    CHECK_ERR(fl_statedir_discard(path), FL_ENOENT, "list it");
    CHECK_ERR(fl_statedir_look_at_rest(path, &info), FL_ENOENT, "list it");
}

static void remove_state(void *unused)
{
    fl_statedir *d = test_state();
    fl_statedir_ready(d);
    fl_statedir_remove(d);
}

/* A server is killed between its last file and its directory. */
static void a_directory_without_files_is_left_of_a_state(void)
{
    fl_statedir_info info;
    char path[512];
    CHECK(test_kill_at("end.removed:1", remove_state, NULL));
    snprintf(path, sizeof path, "%s/%.12s-server-0", fl_test_dir(), TEST_JOB);
    CHECK_OK(fl_statedir_look_at_rest(path, &info));
    CHECK_OK(fl_statedir_discard(path));
    CHECK(access(path, F_OK));
    make_folder("pserver-host:7164", "", path);
    CHECK_OK(fl_statedir_look_at_rest(path, &info));
    CHECK_OK(fl_statedir_discard(path));
    CHECK(access(path, F_OK));
}

/* Neither a folder of another name nor one with other files is touched. */
static void other_folders_are_not_discarded(void)
{
    static const char *const folder[][2] = {
        {"001122334455-server-1", "notes"},
        {"001122334455-server-2", "stage-"},
        {"001122334455-server-3", "dense2"},
        {"001122334455-server-4", "table-x"},
        {"001122334455-server-5", "extent-"},
        {"webserver-1", "stage"},
        {"00112233445-server-1", "stage"},
        {"001122334455-server-", "stage"},
        {"my-server-1", ""},
        {"001122334455-server-1.old", ""},
    };
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++) {
        fl_statedir_info info;
        char path[512], file[600];
        make_folder(folder[i][0], folder[i][1], path);
        CHECK_ERR(fl_statedir_look_at_rest(path, &info), FL_EINVAL,
                  "is not the state of a server");
        CHECK_ERR(fl_statedir_discard(path), FL_EINVAL,
                  "is not the state of a server");
        snprintf(file, sizeof file, "%s/%s", path, folder[i][1]);
        CHECK(!access(file, F_OK));
        snprintf(file, sizeof file, "%s/lock", path);
        CHECK(access(file, F_OK));
    }
}

/* The list of files is what tells a state from other folders. */
static void a_file_that_the_list_lacks_is_refused(void)
{
    fl_mapping *m;
    fl_statedir *d = test_state();
    CHECK_ERR(fl_statedir_map(d, "new", 100, 0, &m), FL_EINVAL,
              "\"new\" is not a file of a state");
    CHECK_ERR(fl_statedir_make(d, "new-1", 100, &m), FL_EINVAL,
              "\"new-1\" is not a file of a state");
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

const fl_test fl_tests[] = {
    {"a state outlives its process", a_state_outlives_its_process},
    {"an incomplete state is made anew", an_incomplete_state_is_made_anew},
    {"a state that is filled is complete when it is told",
     a_state_that_is_filled_is_complete_when_it_is_told},
    {"a state that cannot be filled leaves nothing",
     a_state_that_cannot_be_filled_leaves_nothing},
    {"a state with a name is found without its job",
     a_state_with_a_name_is_found_without_its_job},
    {"a state waits for its server alone", a_state_waits_for_its_server_alone},
    {"a foreign state is refused and stays", a_foreign_state_is_refused},
    {"a state that does not fit is refused with both sizes",
     a_state_that_does_not_fit_is_refused},
    {"the process that holds a state is named", the_holder_of_a_state_is_named},
    {"a child that outlives a server does not hold its state",
     a_child_that_lives_on_does_not_hold_the_state},
    {"mapped memory grows in place, and a full directory is named",
     memory_grows_in_place_and_names_a_full_directory},
    {"room that no byte of a state has is not counted",
     room_that_no_byte_has_is_not_counted},
    {"a launcher removes what its servers have left",
     a_launcher_removes_what_its_servers_left},
    {"rubbish is no state", rubbish_is_no_state},
    {"what is left of a state is discarded",
     what_is_left_of_a_state_is_discarded},
    {"a directory without files is left of a state",
     a_directory_without_files_is_left_of_a_state},
    {"other folders are not discarded", other_folders_are_not_discarded},
    {"a file that the list of a state lacks is refused",
     a_file_that_the_list_lacks_is_refused},
    {0},
};
