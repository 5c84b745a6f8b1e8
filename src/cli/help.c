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
    {"man", FL_OPT_FLAG, &man, "print the manual page"},
    {"bash", FL_OPT_FLAG, &bash, "print the completion of bash"},
    {"zsh", FL_OPT_FLAG, &zsh, "print the completion of zsh"},
    {0},
};

static void print_default(const fl_opt *o)
{
    if (o->type == FL_OPT_INT && *(int *)o->value)
        printf(" (default %d)", *(int *)o->value);
    else if (o->type == FL_OPT_I64)
        printf(" (default %lld)", (long long)*(int64_t *)o->value);
    else if (o->type == FL_OPT_STR && *(const char **)o->value)
        printf(" (default %s)", *(const char **)o->value);
}

static void print_usage(const fl_cmd *c)
{
    printf("paddle %s%s%s%s", c->name, c->opts ? " [flags]" : "",
           c->args ? " " : "", c->args ? c->args : "");
}

static void print_command(const fl_cmd *c)
{
    print_usage(c);
    printf("\n\n%c%s.\n", toupper((unsigned char)*c->help), c->help + 1);
    if (c->opts)
        putchar('\n');
    for (const fl_opt *o = c->opts; o && o->name; o++) {
        printf(o->name[1] ? "  --%-16s %s" : "  -%-17s %s", o->name, o->help);
        print_default(o);
        putchar('\n');
    }
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
    if (markdown)
        print_markdown();
    if (man)
        fl_cli_print_man();
    if (bash)
        fl_cli_print_bash();
    if (zsh)
        fl_cli_print_zsh();
    if (markdown || man || bash || zsh)
        return FL_EXIT_OK;
    for (int i = 0; n && fl_cmds[i]; i++)
        if (!strcmp(fl_cmds[i]->name, arg[0])) {
            print_command(fl_cmds[i]);
            return FL_EXIT_OK;
        }
    if (n)
        return fl_cli_no_command(arg[0]);
    puts("usage: paddle COMMAND ...\n");
    for (int i = 0; fl_cmds[i]; i++)
        printf("  %-9s %s\n", fl_cmds[i]->name, fl_cmds[i]->help);
    puts("\npaddle help COMMAND shows the flags of a command.");
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_help = {
    .name = "help",
    .args = "[COMMAND]",
    .help = "list the commands, or show the flags of one",
    .opts = opts,
    .run = run_help,
};
