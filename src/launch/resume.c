/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c - stores the command of a job beside its snapshots, so that it can
 * be launched again.
 *
 *     DIR/resume   fluid resume 1
 *                  program /usr/bin/paddle
 *                  folder /home/me/job
 *                  word launch            a line for each word
 *                  set FLUID_OWNERS=2     a line for each variable
 *
 * In a line, a backslash is written \\ and the end of a line \n. Of the
 * environment only variables that other hosts would get are kept, and none
 * whose name suggests a secret. A failpoint is armed for one start only. */
#include "base/disk.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/path.h"
#include "launch/launch.h"
#include "state/snapshot.h"
#include "state/snapshot_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "resume"
#define HEAD      "fluid resume 1"

enum {
    MOST = 1 << 20,     /* bytes of the file, or of a command line */
    HOLDER_ENDS = 10000 /* ms to wait for a job that is about to end */
};

extern char **environ;

/* --- writing --- */

static void add_line(fl_str *text, const char *word, const char *rest)
{
    fl_str_printf(text, "%s ", word);
    for (; *rest; rest++) {
        if (*rest == '\\' || *rest == '\n')
            fl_str_add(text, *rest == '\n' ? "\\n" : "\\\\");
        else
            fl_str_bytes(text, rest, 1);
    }
    fl_str_add(text, "\n");
}

/* Variables of Fluid itself only name the files of keys. */
static bool is_secret(const char *entry)
{
    static const char *const marks[] = {"TOKEN", "SECRET", "PASSW", "CREDENT",
                                        "KEY"};
    const size_t n = strcspn(entry, "=");
    bool secret = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = strstr(entry, marks[i]);
        secret |= at && (size_t)(at - entry) < n;
    }
    return secret && !fl_starts_with(entry, "FLUID_");
}

static bool is_kept(const fl_launch *l, const char *entry)
{
    return (fl_launch_is_exported(l, entry) ||
            fl_starts_with(entry, "TRAINING_ROLE=")) &&
           !fl_starts_with(entry, "FLUID_RESTORE=") &&
           !fl_starts_with(entry, "FLUID_FAILPOINT=") && !is_secret(entry);
}

/* The words of this process's command line. */
static fl_err add_words(const fl_disk *disk, fl_str *text)
{
    fl_str line = {0};
    FL_TRY(disk->read(disk, "/proc/self/cmdline", MOST, &line));
    for (size_t at = 0; at < line.n; at += strlen(line.at + at) + 1)
        add_line(text, "word", line.at + at);
    fl_str_fini(&line);
    return FL_OK;
}

static fl_err describe_job(const fl_launch *l, const fl_disk *disk,
                           fl_str *text)
{
    char program[4096] = "", folder[4096] = "";
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 ||
        !getcwd(folder, sizeof folder))
        return fl_fail(FL_EIO,
                       "launch: paddle resume could not repeat this command, "
                       "since its program or folder is not known: %s",
                       strerror(errno));
    fl_str_add(text, HEAD "\n");
    add_line(text, "program", program);
    add_line(text, "folder", folder);
    FL_TRY(add_words(disk, text));
    for (char **e = environ; *e; e++)
        if (is_kept(l, *e))
            add_line(text, "set", *e);
    return FL_OK;
}

/* Whether this launcher starts server 0, which is not running yet. Where
 * several launchers start one job, one of them does. */
static bool has_server_0(const fl_launch *l)
{
    for (int64_t i = 0; i < l->procs.n; i++)
        if (l->procs.at[i].server && !l->procs.at[i].id)
            return true;
    return false;
}

/* Whether another job has the directory. */
static fl_err check_free(const char *dir)
{
    fl_snapshot_lock lock;
    FL_TRY(fl_snapshot_lock_init(&lock, dir, HOLDER_ENDS));
    fl_snapshot_lock_fini(&lock);
    return FL_OK;
}

fl_err fl_launch_remember(const fl_launch *l)
{
    const char *dir = fl_flag_text("FLUID_SNAPSHOT_DIR");
    const fl_disk *disk = fl_disk_real();
    fl_str text = {0};
    if (!dir || !has_server_0(l)) /* only server 0 makes snapshots whole */
        return FL_OK;
    FL_TRY(check_free(dir));
    char *path = fl_path_join(dir, FILE_NAME);
    fl_err err = describe_job(l, disk, &text);
    if (!err)
        err = disk->mkdirs(disk, dir);
    if (!err)
        err = fl_disk_write(disk, path, text.at, text.n, true);
    fl_str_fini(&text);
    fl_mem_free(path);
    return err ? fl_fail_at(err, "for snapshots (FLUID_SNAPSHOT_DIR); name a "
                                 "directory that can be written")
               : FL_OK;
}

/* --- reading --- */

/* Split the next line into its first word and the rest, which is decoded in
 * place. */
static char *next_line(char **at, char **rest)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!*line || !end)
        return NULL;
    *end = 0;
    *at = end + 1;
    char *space = strchr(line, ' ');
    *rest = space ? space + 1 : end;
    if (space)
        *space = 0;
    char *to = *rest;
    for (const char *from = *rest; *from; from++) {
        const bool escaped = *from == '\\' && from[1];
        from += escaped;
        *to++ = escaped && *from == 'n' ? '\n' : *from;
    }
    *to = 0;
    return line;
}

fl_err fl_launched_decode(fl_launched *l, const char *path, char *text)
{
    char *at = text, *rest;
    const char *line = next_line(&at, &rest);
    *l = (fl_launched){0};
    if (!line || strcmp(line, "fluid") || strcmp(rest, "resume 1"))
        return fl_fail(FL_EPROTO,
                       "%s was not written by paddle launch, or is damaged",
                       path);
    while ((line = next_line(&at, &rest))) {
        if (!strcmp(line, "word"))
            fl_push(&l->words, rest);
        else if (!strcmp(line, "program"))
            l->program = rest;
        else if (!strcmp(line, "folder"))
            l->folder = rest;
        else if (!strcmp(line, "set") && strchr(rest, '=') && *rest != '=')
            fl_push(&l->set, rest);
    }
    if (!l->program || !l->folder || !l->words.n)
        return fl_fail(FL_EPROTO, "%s has no command to start: it is damaged",
                       path);
    fl_push(&l->words, NULL);
    return FL_OK;
}

void fl_launched_fini(fl_launched *l)
{
    fl_vec_fini(&l->words);
    fl_vec_fini(&l->set);
}

/* Err: it returns only if it fails. */
static fl_err run_again(const fl_launched *l)
{
    for (int64_t i = 0; i < l->set.n; i++) {
        char *equals = strchr(l->set.at[i], '=');
        *equals = 0;
        setenv(l->set.at[i], equals + 1, 1);
    }
    setenv("FLUID_RESTORE", "1", 1);
    if (chdir(l->folder))
        return fl_fail(FL_EIO,
                       "resume: folder %s, in which the job was started: %s",
                       l->folder, strerror(errno));
    execv(l->program, l->words.at);
    return fl_fail(FL_EIO, "resume: cannot start %s: %s", l->program,
                   strerror(errno));
}

fl_err fl_launch_resume(const char *dir)
{
    const fl_disk *disk = fl_disk_real();
    int64_t last, whole;
    fl_str text = {0};
    fl_launched launched = {0};
    struct stat st;
    const bool missing = stat(dir, &st);
    if (missing || !S_ISDIR(st.st_mode))
        return fl_fail(missing ? FL_ENOENT : FL_EINVAL,
                       "folder %s: %s; name the folder of the job's snapshots "
                       "(its FLUID_SNAPSHOT_DIR)",
                       dir, strerror(missing ? errno : ENOTDIR));
    FL_TRY(fl_snapshot_find(disk, dir, &last, &whole));
    if (!whole)
        return fl_fail(FL_ENOENT,
                       "%s has no whole snapshot to continue from; start the "
                       "job anew with paddle launch",
                       dir);
    char *path = fl_path_join(dir, FILE_NAME);
    fl_err err = disk->read(disk, path, MOST, &text);
    if (err == FL_ENOENT)
        err = fl_fail_at(err, "the job was not started by paddle launch: start "
                              "its processes again with FLUID_RESTORE=1");
    if (!err)
        err = fl_launched_decode(&launched, path, text.at ? text.at : "");
    if (!err)
        err = run_again(&launched);
    fl_launched_fini(&launched);
    fl_str_fini(&text);
    fl_mem_free(path);
    return err;
}
