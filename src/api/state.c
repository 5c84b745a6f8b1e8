/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - lists and removes what servers have kept: states and journals. */
#include "api/engine.h"

#include "base/mem.h"
#include "base/path.h"
#include "pserver/redo.h"
#include "state/statedir.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void describe_holder(const fl_statedir_info *i, const char *path,
                            fl_str *lines)
{
    if (i->pid)
        fl_str_printf(lines, "held by process %d (%s)\n", i->pid, i->command);
    else
        fl_str_printf(lines, "held by nobody; paddle state rm %s discards it\n",
                      path);
}

/* "PATH: server 0 of job 0011.., 1048576 bytes, held by process 4711 (python)",
 * "PATH: the rest of a state: ..". */
static void describe_state(void *user, const char *path)
{
    fl_str *lines = user;
    fl_statedir_info i;
    const fl_err err = fl_statedir_look(path, &i);
    if (!err)
        fl_str_printf(lines, "%s: server %d of job %.12s, %lld bytes, %s", path,
                      i.server, i.job, (long long)i.bytes,
                      i.over     ? "its job has ended, "
                      : !i.ready ? "not complete, "
                                 : "");
    else if (err == FL_ENOENT && !fl_statedir_look_at_rest(path, &i))
        fl_str_printf(lines, "%s: %s, %lld bytes, ", path,
                      i.pid ? "a state that is being made or removed"
                            : "the rest of a state: its server was killed "
                              "while it made or removed it",
                      (long long)i.bytes);
    else {
        fl_str_printf(lines, "%s: %s\n", path, fl_errmsg());
        return;
    }
    describe_holder(&i, path, lines);
}

/* --- journals --- */

typedef struct holding {
    const char *name; /* of the state, and of its journal */
    fl_statedir_info *out;
} holding;

static void match_holder(void *user, const char *path)
{
    const holding *h = user;
    fl_statedir_info state;
    if (strcmp(fl_path_base(path), h->name) != 0 ||
        (fl_statedir_look(path, &state) &&
         fl_statedir_look_at_rest(path, &state)) ||
        !state.pid)
        return;
    h->out->pid = state.pid;
    memcpy(h->out->command, state.command, sizeof state.command);
}

/* The process that uses the state to which the journal in `path` belongs, or
 * makes this state; it also uses the journal. */
static void look_at_holder(const char *path, fl_statedir_info *i)
{
    i->pid = 0;
    fl_statedir_each(match_holder, &(holding){fl_path_base(path), i});
}

static int64_t count_bytes(const char *path)
{
    const fl_disk *d = fl_disk_real();
    fl_file_names names = {0};
    int64_t bytes = 0;
    const fl_err err = d->list(d, path, &names);
    for (int64_t i = 0; i < names.n && !err; i++) {
        char *file = fl_path_join(path, names.at[i]);
        fl_file *f;
        int64_t size;
        if (!d->look(d, file, &f, &size)) {
            bytes += size;
            (void)!d->close(f);
        }
        fl_mem_free(file);
    }
    fl_file_names_fini(&names);
    return bytes;
}

/* "PATH: journal of server 0 of job 0011.., 1048576 bytes, held by nobody;.."
 */
static void describe_journal(void *user, const char *path, const char *base)
{
    fl_str *lines = user;
    fl_statedir_info i = {0};
    if (fl_statedir_look(base, &i))
        fl_str_printf(lines, "%s: journal without a base, ", path);
    else
        fl_str_printf(lines, "%s: journal of server %d of job %.12s, ", path,
                      i.server, i.job);
    fl_str_printf(lines, "%lld bytes, ",
                  (long long)(count_bytes(path) + count_bytes(base)));
    look_at_holder(path, &i);
    describe_holder(&i, path, lines);
}

/* Whether a folder has the name of a state and files of a journal, and nothing
 * else. */
static bool is_journal(const char *path)
{
    const fl_disk *d = fl_disk_real();
    fl_file_names names = {0};
    const fl_err err = d->list(d, path, &names);
    bool is = !err && names.n && fl_statedir_is_name(fl_path_base(path));
    for (int64_t i = 0; i < names.n && is; i++)
        is = fl_starts_with(names.at[i], "journal-") ||
             fl_starts_with(names.at[i], "base");
    fl_file_names_fini(&names);
    return is;
}

/* --- public functions --- */

fl_err fl_state_list(char **text)
{
    fl_str lines = {0};
    fl_statedir_each(describe_state, &lines);
    fl_redo_each(describe_journal, &lines);
    fl_str_add(&lines, "");
    *text = fl_str_take(&lines);
    return FL_OK;
}

/* Check that a folder is a state, or what is left of one. The error names the
 * folder that the user gave, not a file in it. */
static fl_err check_state(const char *path, const char *given)
{
    static const char todo[] = "paddle state ls lists the states and journals";
    fl_file_names names = {0};
    fl_statedir_info i;
    fl_err err = fl_disk_real()->list(fl_disk_real(), path, &names);
    fl_file_names_fini(&names);
    if (err == FL_ENOENT)
        return fl_fail(err, "%s does not exist; %s", given, todo);
    if (err)
        return fl_fail_at(err, "%s", todo);
    err = fl_statedir_look(path, &i);
    if (err == FL_ENOENT)
        err = fl_statedir_look_at_rest(path, &i);
    if (err == FL_ENOENT || err == FL_EINVAL)
        return fl_fail(FL_EINVAL,
                       "%s is neither the state nor the journal of a server; "
                       "%s",
                       given, todo);
    return err;
}

static fl_err remove_journal(const char *path)
{
    fl_statedir_info i;
    look_at_holder(path, &i);
    if (i.pid)
        return fl_fail(FL_EINVAL, "%s is held by process %d (%s); end it first",
                       path, i.pid, i.command);
    return fl_disk_remove_tree(fl_disk_real(), path);
}

fl_err fl_state_remove(const char *path)
{
    char real[PATH_MAX]; /* a path may end with a slash, or be "." */
    const char *at = realpath(path, real) ? real : path;
    if (is_journal(at))
        return remove_journal(at);
    FL_TRY(check_state(at, path));
    return fl_statedir_discard(at);
}
