/* SPDX-License-Identifier: Apache-2.0 */
/* paddle resume - a job goes on from its last snapshot. */
#include "cli/cli.h"

static int run_resume(int n, char **arg)
{
    if (n != 1)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "resume: say where the snapshots are: paddle resume "
                           "DIR");
    (void)!fl_launch_resume(arg[0]); /* returns only if it fails */
    return fl_cli_fail(FL_EXIT_FAILED, true, "resume");
}

const fl_cmd fl_cmd_resume = {
    .name = "resume",
    .args = "DIR",
    .help = "continue a job of paddle launch from its last snapshot "
            "(FLUID_SNAPSHOT_DIR)",
    .examples = "FLUID_SNAPSHOT_DIR=/data/snapshots paddle launch train.py\n"
                "paddle resume /data/snapshots\n"
                "    the same job, with the flags and variables that it had\n",
    .run = run_resume,
};
