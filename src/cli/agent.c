/* SPDX-License-Identifier: Apache-2.0 */
/* paddle agent - run processes of this host for a launcher on another. */
#include "cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

static int run_agent(int n, char **arg)
{
    const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (in < 0 || out < 0)
        return fl_cli_fail(FL_EXIT_FAILED, false,
                           "agent: stdin and stdout must be open; paddle "
                           "launch --hosts starts agents");
    if (fl_launch_agent(in, out))
        return fl_cli_fail(FL_EXIT_FAILED, true, "agent");
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_agent = {
    .name = "agent",
    .group = FL_CMD_INNER,
    .help = "run processes of this host for paddle launch --hosts, which "
            "starts this command by ssh",
    .run = run_agent,
};
