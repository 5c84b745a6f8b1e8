/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the kept states of servers, for people. */
#include "api/engine.h"

#include "base/mem.h"
#include "state/statedir.h"

#include <string.h>

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
    if (i.pid)
        fl_str_printf(lines, "held by process %d (%s)\n", i.pid, i.command);
    else
        fl_str_printf(lines, "held by nobody; paddle state rm %s discards it\n",
                      path);
}

fl_err fl_state_list(char **text)
{
    fl_str lines = {0};
    fl_statedir_each(describe_state, &lines);
    fl_str_add(&lines, "");
    *text = fl_str_take(&lines);
    return FL_OK;
}

fl_err fl_state_remove(const char *path)
{
    fl_statedir_info i;
    FL_TRY(fl_statedir_look(path, &i));
    if (i.pid)
        return fl_fail(FL_EINVAL, "%s is held by process %d (%s); end it first",
                       path, i.pid, i.command);
    return fl_disk_remove_tree(fl_disk_real(), path);
}
