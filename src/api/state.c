/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - lists and removes what servers have kept: states and journals. */
#include "api/engine.h"

#include "base/mem.h"
#include "base/path.h"
#include "pserver/redo.h"
#include "state/statedir.h"

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

/* "PATH: server 0 of job 0011.., 1048576 bytes, held by process 4711 (python)"
 */
static void describe_state(void *user, const char *path)
{
    fl_str *lines = user;
    fl_statedir_info i;
    if (fl_statedir_look(path, &i)) {
        fl_str_printf(lines, "%s: %s\n", path, fl_errmsg());
        return;
    }
    fl_str_printf(lines, "%s: server %d of job %.12s, %lld bytes, %s", path,
                  i.server, i.job, (long long)i.bytes,
                  i.over     ? "its job has ended, "
                  : !i.ready ? "not complete, "
                             : "");
    describe_holder(&i, path, lines);
}

/* --- journals --- */

/* The process that uses the state to which the journal in `path` belongs; it
 * also uses the journal. */
static void look_at_holder(const char *path, fl_statedir_info *i)
{
    fl_statedir_info state;
    char *found;
    i->pid = 0;
    if (fl_statedir_find(fl_path_base(path), &found))
        return;
    if (!fl_statedir_look(found, &state) && state.pid) {
        i->pid = state.pid;
        memcpy(i->command, state.command, sizeof i->command);
    }
    fl_mem_free(found);
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

/* Whether a folder has files of a journal, and nothing else. */
static bool is_journal(const char *path)
{
    const fl_disk *d = fl_disk_real();
    fl_file_names names = {0};
    const fl_err err = d->list(d, path, &names);
    bool is = !err && names.n;
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

/* Read what is in the folder of a state. The error names the folder that the
 * user gave, not a file in it. */
static fl_err look_at_state(const char *path, fl_statedir_info *i)
{
    static const char todo[] = "paddle state ls lists the states and journals";
    fl_file_names names = {0};
    fl_err err = fl_disk_real()->list(fl_disk_real(), path, &names);
    fl_file_names_fini(&names);
    if (err == FL_ENOENT)
        return fl_fail(err, "%s does not exist; %s", path, todo);
    if (err)
        return fl_fail_at(err, "%s", todo);
    err = fl_statedir_look(path, i);
    if (err == FL_ENOENT || err == FL_EINVAL)
        return fl_fail(FL_EINVAL,
                       "%s is neither the state nor the journal of a server; "
                       "%s",
                       path, todo);
    return err;
}

fl_err fl_state_remove(const char *path)
{
    fl_statedir_info i = {0};
    if (is_journal(path))
        look_at_holder(path, &i);
    else
        FL_TRY(look_at_state(path, &i));
    if (i.pid)
        return fl_fail(FL_EINVAL, "%s is held by process %d (%s); end it first",
                       path, i.pid, i.command);
    return fl_disk_remove_tree(fl_disk_real(), path);
}
