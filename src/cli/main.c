/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the paddle command: finds the subcommand, reads its flags. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values that flags have set; a process runs one command, once. */
static const void *given[64];

bool fl_cli_is_given(const void *value)
{
    bool is = false;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        is |= given[i] == value;
    return is;
}

static void note_given(const void *value)
{
    size_t i = 0;
    while (given[i] && given[i] != value)
        i++;
    given[i] = value;
}

int fl_cli_fail(int code, bool because, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("paddle: ", stderr);
    vfprintf(stderr, fmt, ap);
    if (because)
        fprintf(stderr, ": %s", fl_errmsg());
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

/* Complain of a misspelt word; the rest of the sentence is the name that was
 * meant, with `sign` before it, or else the page that lists the names. */
static int fail_misspelt(const char *sentence, const char *word,
                         const char *const *names, const char *sign,
                         const char *page)
{
    const char *best = fl_nearest(word, names);
    if (best)
        return fl_cli_fail(FL_EXIT_USAGE, false, "%s; did you mean %s%s?",
                           sentence, sign, best);
    return fl_cli_fail(FL_EXIT_USAGE, false, "%s; see paddle help%s", sentence,
                       page);
}

/* What replaces a command of PaddlePaddle's old command line; or NULL. */
static const char *successor_of(const char *name)
{
    static const struct {
        const char *name, *instead;
    } old[] = {
        {"train", "run the training script itself: python train.py (a v1 "
                  "configuration must be rewritten with paddle.v2)"},
        {"merge_model",
         "parameters.to_tar and Topology.serialize_for_inference "
         "save a model in two files"},
        {"dump_config", "print(topology.proto()) shows a network"},
        {"make_diagram", "fluid.debugger.draw_block_graphviz draws a program"},
        {"usage", "paddle help lists the commands"},
    };
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (!strcmp(old[i].name, name))
            return old[i].instead;
    return NULL;
}

int fl_cli_no_command(const char *name)
{
    const char *names[64] = {NULL};
    const char *instead = successor_of(name);
    if (instead)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "there is no command \"%s\" any more: %s", name,
                           instead);
    char sentence[128];
    for (int i = 0; fl_cmds[i]; i++)
        names[i] = fl_cmds[i]->name;
    snprintf(sentence, sizeof sentence, "there is no command \"%s\"", name);
    return fail_misspelt(sentence, name, names, "paddle ", "");
}

/* Is `word` (up to its end or '=') the flag `name`? */
static bool names_flag(const char *word, const char *name)
{
    for (; *name && *word; name++, word++)
        if (*name != *word && !(strchr("-_", *name) && strchr("-_", *word)))
            return false;
    return !*name && (!*word || *word == '=');
}

static const fl_opt *find_opt(const fl_opt *opts, const char *word)
{
    for (; opts && opts->name; opts++)
        if (names_flag(word, opts->name))
            return opts;
    return NULL;
}

/* What was expected in place of the text; NULL: it is a whole number that the
 * flag can hold. */
static const char *read_number(const char *text, const fl_opt *o)
{
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end)
        return "a whole number";
    if (errno || (o->type == FL_OPT_INT && v != (int)v))
        return v < 0 ? "a larger number" : "a smaller number";
    if (o->type == FL_OPT_I64)
        *(int64_t *)o->value = v;
    else
        *(int *)o->value = (int)v;
    return NULL;
}

static int no_flag(const fl_cmd *cmd, const char *word)
{
    const char *names[64] = {NULL};
    char name[64], sentence[128], page[32];
    for (int i = 0; cmd->opts && cmd->opts[i].name; i++)
        names[i] = cmd->opts[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    snprintf(sentence, sizeof sentence, "%s has no flag --%s", cmd->name, name);
    snprintf(page, sizeof page, " %s", cmd->name);
    return fail_misspelt(sentence, name, names, "--", page);
}

/* "--name", or "-x" where the command has a flag of that letter. */
static bool is_flag(const fl_cmd *cmd, const char *word)
{
    return (!strncmp(word, "--", 2) && word[2]) ||
           (word[0] == '-' && word[1] && !word[2] &&
            find_opt(cmd->opts, word + 1));
}

/* Take one flag at *at; 0, or the exit code of a complaint. */
static int take_flag(const fl_cmd *cmd, int n, char **arg, int *at)
{
    const char *word = arg[*at] + (arg[*at][1] == '-' ? 2 : 1);
    const fl_opt *o = find_opt(cmd->opts, word);
    const char *value = strchr(word, '=');
    if (!o)
        return no_flag(cmd, word);
    note_given(o->value);
    if (o->type == FL_OPT_FLAG) {
        if (value)
            return fl_cli_fail(FL_EXIT_USAGE, false,
                               "--%s takes no value, got \"%s\"", o->name,
                               value + 1);
        *(bool *)o->value = true;
        return 0;
    }
    if (!value && *at + 1 >= n)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "--%s needs a value; see paddle help %s", o->name,
                           cmd->name);
    value = value ? value + 1 : arg[++*at];
    const char *expected = NULL;
    if (o->type == FL_OPT_STR)
        *(const char **)o->value = value;
    else
        expected = read_number(value, o);
    return expected ? fl_cli_fail(FL_EXIT_USAGE, false,
                                  "--%s is \"%s\", expected %s", o->name, value,
                                  expected)
                    : 0;
}

static int run_command(const fl_cmd *cmd, int n, char **arg)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        if (left && cmd->own_flags) {
            arg[left++] = arg[i];
            continue;
        }
        if (!strcmp(arg[i], "--help") || !strcmp(arg[i], "-h"))
            return fl_cmd_help.run(1, (char *[]){(char *)cmd->name});
        if (!is_flag(cmd, arg[i])) {
            arg[left++] = arg[i];
            continue;
        }
        int code = take_flag(cmd, n, arg, &i);
        if (code)
            return code;
    }
    if (left && !cmd->args)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "%s takes no arguments, got \"%s\"; see paddle help "
                           "%s",
                           cmd->name, arg[0], cmd->name);
    return cmd->run(left, arg);
}

static const char *command_of(const char *word)
{
    if (!strcmp(word, "--version") || !strcmp(word, "-v"))
        return "version";
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        return "help";
    return word;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fl_cmd_help.run(0, NULL);
        return FL_EXIT_USAGE;
    }
    const char *name = command_of(argv[1]);
    for (int i = 0; fl_cmds[i]; i++)
        if (!strcmp(fl_cmds[i]->name, name)) {
            int code = run_command(fl_cmds[i], argc - 2, argv + 2);
            if (fflush(stdout) || ferror(stdout))
                return fl_cli_fail(FL_EXIT_FAILED, false,
                                   "stdout cannot be written: is the disk "
                                   "full, or the other end of a pipe closed?");
            return code;
        }
    return fl_cli_no_command(name);
}

const fl_cmd *const fl_cmds[] = {
    &fl_cmd_agent,   &fl_cmd_ckpt,    &fl_cmd_data,   &fl_cmd_digest,
    &fl_cmd_env,     &fl_cmd_help,    &fl_cmd_k8s,    &fl_cmd_launch,
    &fl_cmd_pserver, &fl_cmd_read,    &fl_cmd_resume, &fl_cmd_show,
    &fl_cmd_state,   &fl_cmd_version, &fl_cmd_why,    NULL,
};
