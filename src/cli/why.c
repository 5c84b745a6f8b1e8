/* SPDX-License-Identifier: Apache-2.0 */
/* paddle why - which processes wait for which, as running servers see it. */
#include "cli/cli.h"

#include <stdio.h>

static int run_why(int n, char **arg)
{
    int code = FL_EXIT_OK;
    if (n < 1)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "why: say which servers: paddle why HOST:PORT");
    for (int i = 0; i < n; i++) {
        char *text;
        if (fl_why(arg[i], &text)) {
            code = fl_cli_fail(FL_EXIT_FAILED, true, "why");
            continue;
        }
        fputs(text, stdout);
        fl_free(text);
    }
    return code;
}

const fl_cmd fl_cmd_why = {
    .name = "why",
    .group = FL_CMD_WATCH,
    .args = "HOST:PORT ...",
    .help = "show which processes of a job wait for which, as running servers "
            "see it",
    .examples = "paddle why 127.0.0.1:6170 127.0.0.1:6171\n"
                "    the servers of a job that seems to hang\n",
    .run = run_why,
};
