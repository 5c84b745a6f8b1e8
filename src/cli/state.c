/* SPDX-License-Identifier: Apache-2.0 */
/* paddle state - what servers keep beyond the end of their processes. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static int list_states(void)
{
    char *text;
    if (fl_state_list(&text))
        return fl_cli_fail(FL_EXIT_FAILED, true, "state ls");
    fputs(*text ? text : "no server has left a state\n", stdout);
    fl_free(text);
    return FL_EXIT_OK;
}

static int run_state(int n, char **arg)
{
    int code = FL_EXIT_OK;
    if (n == 1 && !strcmp(arg[0], "ls"))
        return list_states();
    if (n < 2 || strcmp(arg[0], "rm"))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "state: expected ls, or rm DIR..; see paddle help "
                           "state");
    for (int i = 1; i < n; i++)
        if (fl_state_remove(arg[i]))
            code = fl_cli_fail(FL_EXIT_FAILED, true, "state rm");
    return code;
}

const fl_cmd fl_cmd_state = {
    .name = "state",
    .group = FL_CMD_WATCH,
    .args = "ls | rm DIR...",
    .help = "list or remove the states and journals that servers have kept "
            "(FLUID_DURABILITY)",
    .examples = "paddle state ls\n"
                "    each state: its folder, its server, and whether a process "
                "uses it\n"
                "paddle state rm /dev/shm/fluid.0/4e0e0008ef83-server-0\n"
                "    remove one, as ls names it\n",
    .run = run_state,
};
