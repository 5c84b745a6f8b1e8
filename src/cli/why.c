/* SPDX-License-Identifier: Apache-2.0 */
/* paddle why - who waits for whom at a server that runs. */
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
    .args = "HOST:PORT ...",
    .help = "show who waits for whom at a running parameter server",
    .run = run_why,
};
