/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - the manual page and the completions of shells, from the tables
 * of commands and flags. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void print_flag_name(const fl_opt *o)
{
    printf(o->name[1] ? "--%s" : "-%s", o->name);
}

/* --- the manual page --- */

/* Text of roff: no line of it may become a request, no dash a hyphen. */
static void print_roff(const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break;
        case '.':
        case '\'':
            printf("\\&%c", *text);
            break;
        default:
            putchar(*text);
        }
}

static void print_man_flag(const fl_opt *o)
{
    char text[FL_CLI_LONGEST];
    fl_cli_write_flag(o, text);
    fputs(".TP\n.B ", stdout);
    print_roff(o->name[1] ? "--" : "-");
    print_roff(o->name);
    fputs(o->type == FL_OPT_FLAG ? "\n" : " \\fIVALUE\\fR\n", stdout);
    print_roff(text);
    putchar('\n');
}

/* Lines as they are. */
static void print_man_lines(const char *text)
{
    puts(".nf");
    while (*text) {
        const int n = (int)strcspn(text, "\n");
        char line[256];
        snprintf(line, sizeof line, "%.*s", n, text);
        print_roff(line);
        putchar('\n');
        text += n + 1;
    }
    puts(".fi");
}

static void print_man_flags(const fl_cmd *c)
{
    for (const fl_opt *o = c->opts; o && o->name; o++)
        print_man_flag(o);
}

static void print_man_command(const fl_cmd *c)
{
    printf(".TH paddle\\-%s 1 \"\" \"Fluid %s\" \"User Commands\"\n", c->name,
           fl_version());
    printf(".SH NAME\npaddle\\-%s \\- ", c->name);
    print_roff(c->help);
    printf("\n.SH SYNOPSIS\n.B paddle %s\n%s", c->name,
           c->opts ? "[\\fIFLAGS\\fR] " : "");
    print_roff(c->args ? c->args : "");
    puts(c->opts ? "\n.SH FLAGS" : "");
    print_man_flags(c);
    if (c->examples) {
        puts(".SH EXAMPLES");
        print_man_lines(c->examples);
    }
    puts(".SH SEE ALSO\n.BR paddle (1)");
}

void fl_cli_print_man(const fl_cmd *c)
{
    if (c) {
        print_man_command(c);
        return;
    }
    printf(".TH PADDLE 1 \"\" \"Fluid %s\" \"User Commands\"\n", fl_version());
    puts(".SH NAME\npaddle \\- train models on one machine or on many");
    puts(".SH SYNOPSIS\n.B paddle\n.I COMMAND\n[\\fIFLAGS\\fR] "
         "[\\fIARGUMENTS\\fR]");
    puts(".SH COMMANDS");
    for (int i = 0; fl_cmds[i]; i++) {
        c = fl_cmds[i];
        printf(".SS paddle %s ", c->name);
        print_roff(c->args ? c->args : "");
        putchar('\n');
        print_roff(c->help);
        putchar('\n');
        print_man_flags(c);
    }
    puts(".SH NOTES\nA flag may be written with dashes or underscores, and "
         "its value after a space or after =\\&. Each command has a page of "
         "its own: paddle\\-launch(1).");
}

/* --- completion --- */

static void print_commands(void)
{
    for (int i = 0; fl_cmds[i]; i++)
        printf("%s%s", i ? " " : "", fl_cmds[i]->name);
}

/* Flags of a command. */
static void print_flags(const fl_cmd *c)
{
    for (const fl_opt *o = c->opts; o && o->name; o++) {
        putchar(' ');
        print_flag_name(o);
    }
    fputs(" --help", stdout);
}

void fl_cli_print_bash(void)
{
    puts("# Completion of paddle for bash, made by paddle help --bash.\n"
         "_paddle() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
         "    if [ \"$COMP_CWORD\" = 1 ]; then");
    fputs("        words='", stdout);
    print_commands();
    puts("'\n    elif [[ $word == -* ]]; then\n"
         "        case ${COMP_WORDS[1]} in");
    for (int i = 0; fl_cmds[i]; i++) {
        printf("        %s) words='", fl_cmds[i]->name);
        print_flags(fl_cmds[i]);
        puts("' ;;");
    }
    fputs("        esac\n    elif [ \"${COMP_WORDS[1]}\" = help ]; then\n"
          "        words='",
          stdout);
    print_commands();
    puts("'\n    fi\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _paddle paddle");
}

/* A text between single quotes, in which zsh takes brackets and colons for
 * itself. */
static void print_zsh(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_flag(const fl_opt *o)
{
    fputs(" \\\n            '", stdout);
    print_flag_name(o);
    putchar('[');
    print_zsh(o->help);
    putchar(']');
    if (o->type != FL_OPT_FLAG)
        fputs(":value:_files", stdout);
    putchar('\'');
}

void fl_cli_print_zsh(void)
{
    puts("#compdef paddle\n"
         "# Completion of paddle for zsh, made by paddle help --zsh.\n"
         "local -a commands=(");
    for (int i = 0; fl_cmds[i]; i++) {
        printf("    '%s:", fl_cmds[i]->name);
        print_zsh(fl_cmds[i]->help);
        puts("'");
    }
    puts(")\n"
         "if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "else\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $command in");
    for (int i = 0; fl_cmds[i]; i++) {
        printf("    %s)\n        _arguments '--help[show the flags]'",
               fl_cmds[i]->name);
        for (const fl_opt *o = fl_cmds[i]->opts; o && o->name; o++)
            print_zsh_flag(o);
        puts(" \\\n            '*:file:_files' ;;");
    }
    puts("    esac\nfi");
}
