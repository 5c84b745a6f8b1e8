/* SPDX-License-Identifier: Apache-2.0 */
/* paddle read - raw logs on stdin, lines of slots on stdout. */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

static int64_t dim = 1000001;
static const char *hash = "python";

static const fl_opt opts[] = {
    {"dim", FL_OPT_I64, &dim, "number of ids; every id is below it"},
    {"hash", FL_OPT_STR, &hash,
     "hash of the categories: python (as with PYTHONHASHSEED=0), crc32 or fnv"},
    {0},
};

static int run_read(int n, char **arg)
{
    if (!n)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "read: say which format: paddle read criteo <IN "
                           ">OUT");
    if (n > 1)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "read takes one argument, got \"%s\" as well; it "
                           "reads stdin and writes stdout: paddle read criteo "
                           "<IN >OUT",
                           arg[1]);
    if (strcmp(arg[0], "criteo"))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "read: the format is \"%s\", expected criteo; see "
                           "paddle help read",
                           arg[0]);
    const fl_criteo how = {.dim = dim, .hash = hash};
    if (fl_criteo_convert(&how, STDIN_FILENO, STDOUT_FILENO))
        return fl_cli_fail(FL_EXIT_FAILED, true, "read");
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_read = {
    .name = "read",
    .group = FL_CMD_FILES,
    .args = "criteo <IN >OUT",
    .help =
        "convert raw Criteo lines to lines of slots, as criteo_reader.py does",
    .examples = "paddle read criteo <day_0 >day_0.slots\n",
    .opts = opts,
    .run = run_read,
};
