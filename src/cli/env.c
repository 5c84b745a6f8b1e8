/* SPDX-License-Identifier: Apache-2.0 */
/* paddle env - what this process would be in a job, and who says so. */
#include "cli/cli.h"

#include <stdio.h>

static fl_role_args args;

static const fl_opt opts[] = {
    {"role", FL_OPT_STR, &args.role,
     "role of this process: TRAINER or PSERVER"},
    {"endpoints", FL_OPT_STR, &args.endpoints,
     "all servers: host:port,host:port"},
    {"endpoint", FL_OPT_STR, &args.endpoint,
     "the server that this process is: host:port"},
    {"trainer_id", FL_OPT_STR, &args.trainer_id,
     "number of this trainer, counted from 0"},
    {"trainers", FL_OPT_STR, &args.trainers, "number of trainers of the job"},
    {0},
};

static int run_env(int n, char **arg)
{
    fl_role role;
    if (fl_role_init(&role, &args))
        return fl_cli_fail(FL_EXIT_FAILED, true, "env");
    char *text = fl_role_text(&role);
    fputs(text, stdout);
    fl_free(text);
    fl_role_fini(&role);
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_env = {
    .name = "env",
    .group = FL_CMD_WATCH,
    .help = "show the role of this process in a job and which variable or flag "
            "sets it",
    .examples = "TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 paddle env\n"
                "    check the variables; an error names the one that is wrong "
                "or missing\n",
    .opts = opts,
    .run = run_env,
};
