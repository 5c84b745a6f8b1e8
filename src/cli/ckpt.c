/* SPDX-License-Identifier: Apache-2.0 */
/* paddle digest, paddle ckpt - saved folders, undamaged and equal or not. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static int run_digest(int n, char **arg)
{
    int code = FL_EXIT_OK;
    if (n < 1)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "digest: say which folder: paddle digest DIR");
    fl_engine *e = fl_engine_new();
    for (int i = 0; i < n; i++) {
        char hex[FL_DIGEST_TEXT];
        if (fl_digest(e, arg[i], hex))
            code = fl_cli_fail(FL_EXIT_FAILED, true, "digest");
        else
            printf("%s  %s\n", hex, arg[i]);
    }
    fl_engine_free(e);
    return code;
}

static int list_checkpoints(fl_engine *e, const char *dir)
{
    char *text;
    if (fl_checkpoint_list(e, dir, &text))
        return fl_cli_fail(FL_EXIT_FAILED, true, "ckpt ls");
    fputs(text, stdout);
    fl_free(text);
    return FL_EXIT_OK;
}

static int verify_folder(fl_engine *e, const char *dir)
{
    char *text;
    const fl_err err = fl_verify(e, dir, &text);
    const bool damaged = *text;
    fputs(text, stderr);
    fl_free(text);
    if (err && !damaged)
        return fl_cli_fail(FL_EXIT_FAILED, true, "ckpt verify");
    if (!err)
        printf("%s is as it was saved\n", dir);
    return err ? FL_EXIT_FAILED : FL_EXIT_OK;
}

static int compare_folders(fl_engine *e, const char *a, const char *b)
{
    char *text;
    if (fl_differ(e, a, b, &text))
        return fl_cli_fail(FL_EXIT_FAILED, true, "ckpt diff");
    const int code = *text ? FL_EXIT_FAILED : FL_EXIT_OK;
    fputs(*text ? text : "the folders are equal\n", stdout);
    fl_free(text);
    return code;
}

static int run_ckpt(int n, char **arg)
{
    int code = FL_EXIT_OK;
    const char *verb = n ? arg[0] : "";
    const bool diff = !strcmp(verb, "diff"), ls = !strcmp(verb, "ls");
    if ((!ls && !diff && strcmp(verb, "verify")) || n < 2 || (diff && n != 3))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "ckpt: expected ls DIR.., verify DIR.. or diff DIR "
                           "DIR; see paddle help ckpt");
    fl_engine *e = fl_engine_new();
    if (diff)
        code = compare_folders(e, arg[1], arg[2]);
    for (int i = 1; i < n && !diff; i++) {
        const int one =
            ls ? list_checkpoints(e, arg[i]) : verify_folder(e, arg[i]);
        code = code ? code : one;
    }
    fl_engine_free(e);
    return code;
}

const fl_cmd fl_cmd_digest = {
    .name = "digest",
    .group = FL_CMD_FILES,
    .args = "DIR...",
    .help = "print a SHA-256 of a saved folder, equal for equal models",
    .examples = "paddle digest model-1 model-2\n"
                "    a line each: the SHA-256 and the folder\n",
    .run = run_digest,
};

const fl_cmd fl_cmd_ckpt = {
    .name = "ckpt",
    .group = FL_CMD_FILES,
    .args = "ls DIR... | verify DIR... | diff DIR DIR",
    .help = "list checkpoints, look for damage in saved folders, or compare "
            "two of them",
    .examples = "paddle ckpt ls checkpoints\n"
                "    the checkpoints in a folder, and which is the last\n"
                "paddle ckpt verify model\n"
                "    look for damage; exit code 1 if there is any\n"
                "paddle ckpt diff model-1 model-2\n"
                "    the variables that differ; exit code 1 if there are any\n",
    .run = run_ckpt,
};
