/* SPDX-License-Identifier: Apache-2.0 */
/* paddle show - saved programs, tensors and folders, in words. */
#include "cli/cli.h"

#include <stdio.h>

static bool ops, layers;

static const fl_opt opts[] = {
    {"ops", FL_OPT_FLAG, &ops,
     "print the table of operators, as in docs/ops.md"},
    {"layers", FL_OPT_FLAG, &layers,
     "print the layers and optimisers, as in docs/layers.md"},
    {0},
};

static int show_file(fl_engine *e, const char *path)
{
    char *text;
    if (fl_show(e, path, &text))
        return fl_cli_fail(FL_EXIT_FAILED, true, "show");
    fputs(text, stdout);
    fl_free(text);
    return FL_EXIT_OK;
}

static int run_show(int n, char **arg)
{
    int code = FL_EXIT_OK;
    if (!n && !ops && !layers)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "show needs a file or a folder; see paddle help "
                           "show");
    fl_engine *e = fl_engine_new();
    if (ops)
        fl_cli_print_ops(e);
    if (layers)
        fl_cli_print_layers(e);
    for (int i = 0; i < n && !code; i++)
        code = show_file(e, arg[i]);
    fl_engine_free(e);
    return code;
}

const fl_cmd fl_cmd_show = {
    .name = "show",
    .group = FL_CMD_FILES,
    .args = "FILE|DIR...",
    .help = "print a saved program or tensor, or list and check a saved folder",
    .examples = "paddle show model/__model__\n"
                "paddle show model\n",
    .opts = opts,
    .run = run_show,
};
