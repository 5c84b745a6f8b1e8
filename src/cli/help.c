/* SPDX-License-Identifier: Apache-2.0 */
/* paddle help - commands, or the flags of one. */
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* One command a process: file scope is fine. */
static bool markdown, man, bash, zsh;

static const fl_opt opts[] = {
    {"markdown", FL_OPT_FLAG, &markdown,
     "print all commands as docs/cli.md shows them"},
    {"man", FL_OPT_FLAG, &man, "print the manual page, or that of COMMAND"},
    {"bash", FL_OPT_FLAG, &bash, "print the completion of bash"},
    {"zsh", FL_OPT_FLAG, &zsh, "print the completion of zsh"},
    {0},
};

static const char *const headings[FL_CMD_GROUPS] = {
    [FL_CMD_RUN] = "run a job",
    [FL_CMD_WATCH] = "inspect a job and what it has left behind",
    [FL_CMD_FILES] = "work with files of data and models",
    [FL_CMD_ABOUT] = "about this command",
    [FL_CMD_INNER] = "started by other commands",
};

enum {
    COLUMNS = 80,
    FLAG_COLUMN = 21 /* where the text of a flag begins */
};

/* Words from `column` on, with line breaks; continued lines begin at
 * `indent`. */
static void print_wrapped(const char *text, int column, int indent)
{
    bool first = true;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n >= COLUMNS) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", n, text);
        column += n;
        text += n + strspn(text + n, " ");
        first = false;
    }
    putchar('\n');
}

void fl_cli_write_flag(const fl_opt *o, char out[FL_CLI_LONGEST])
{
    const bool alias = !strncmp(o->help, "same as ", 8);
    char value[64] = "";
    if (o->type == FL_OPT_INT && *(int *)o->value > 0)
        snprintf(value, sizeof value, "%d", *(int *)o->value);
    else if (o->type == FL_OPT_I64)
        snprintf(value, sizeof value, "%lld", (long long)*(int64_t *)o->value);
    else if (o->type == FL_OPT_STR && *(const char **)o->value)
        snprintf(value, sizeof value, "%s", *(const char **)o->value);
    if (*value && !alias)
        snprintf(out, FL_CLI_LONGEST, "%s (default: %s)", o->help, value);
    else
        snprintf(out, FL_CLI_LONGEST, "%s", o->help);
}

static void print_usage(const fl_cmd *c)
{
    printf("paddle %s%s%s%s", c->name, c->opts ? " [flags]" : "",
           c->args ? " " : "", c->args ? c->args : "");
}

static void print_flag(const fl_opt *o)
{
    char text[FL_CLI_LONGEST];
    const int n = printf(o->name[1] ? "  --%s" : "  -%s", o->name);
    fl_cli_write_flag(o, text);
    if (n + 2 > FLAG_COLUMN)
        printf("\n%*s", FLAG_COLUMN, "");
    else
        printf("%*s", FLAG_COLUMN - n, "");
    print_wrapped(text, FLAG_COLUMN, FLAG_COLUMN);
}

static void print_examples(const fl_cmd *c)
{
    puts("\nExamples:\n");
    for (const char *at = c->examples; *at;) {
        const int n = (int)strcspn(at, "\n");
        printf("  %.*s\n", n, at);
        at += n + 1;
    }
}

static void print_command(const fl_cmd *c)
{
    char sentence[FL_CLI_LONGEST];
    printf("usage: ");
    print_usage(c);
    snprintf(sentence, sizeof sentence, "%c%s.",
             toupper((unsigned char)*c->help), c->help + 1);
    puts("\n");
    print_wrapped(sentence, 0, 0);
    if (c->opts)
        putchar('\n');
    for (const fl_opt *o = c->opts; o && o->name; o++)
        print_flag(o);
    if (c->examples)
        print_examples(c);
}

static void print_commands(void)
{
    puts("usage: paddle COMMAND [flags] [arguments]");
    for (int g = 0; g < FL_CMD_GROUPS; g++) {
        printf("\n%s\n", headings[g]);
        for (int i = 0; fl_cmds[i]; i++)
            if ((int)fl_cmds[i]->group == g) {
                const int n = printf("  %-9s ", fl_cmds[i]->name);
                print_wrapped(fl_cmds[i]->help, n, n);
            }
    }
    puts("\npaddle help COMMAND, or paddle COMMAND --help, shows the flags of "
         "a command\nand examples. A flag may be written --worker_num 2, "
         "--worker_num=2 or\n--worker-num=2.");
}

static const fl_cmd *find_command(const char *name)
{
    for (int i = 0; fl_cmds[i]; i++)
        if (!strcmp(fl_cmds[i]->name, name))
            return fl_cmds[i];
    return NULL;
}

static void print_markdown(void)
{
    puts("# The paddle command\n\nMade by `paddle help --markdown`.");
    for (int i = 0; fl_cmds[i]; i++) {
        printf("\n## paddle %s\n\n```\n", fl_cmds[i]->name);
        print_command(fl_cmds[i]);
        puts("```");
    }
}

static int run_help(int n, char **arg)
{
    const fl_cmd *c = n ? find_command(arg[0]) : NULL;
    if (n && !c)
        return fl_cli_no_command(arg[0]);
    if (markdown)
        print_markdown();
    if (man)
        fl_cli_print_man(c);
    if (bash)
        fl_cli_print_bash();
    if (zsh)
        fl_cli_print_zsh();
    if (markdown || man || bash || zsh)
        return FL_EXIT_OK;
    if (c)
        print_command(c);
    else
        print_commands();
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_help = {
    .name = "help",
    .group = FL_CMD_ABOUT,
    .args = "[COMMAND]",
    .help = "list the commands, or show the flags of one and examples",
    .examples = "paddle help launch\n"
                "source <(paddle help --bash)\n"
                "    completion in this shell\n",
    .opts = opts,
    .run = run_help,
};
