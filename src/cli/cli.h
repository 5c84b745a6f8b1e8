/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - a subcommand is a table: its name, its flags, what it runs. */
#ifndef FL_CLI_CLI_H
#define FL_CLI_CLI_H

#include "fluid.h"

typedef enum fl_opt_type {
    FL_OPT_FLAG, /* bool */
    FL_OPT_INT,  /* int */
    FL_OPT_I64,  /* int64_t */
    FL_OPT_STR,  /* const char * */
} fl_opt_type;

/* --name value, --name=value; dashes and underscores are equal. A name of one
 * letter has one dash: -H value. */
typedef struct fl_opt {
    const char *name; /* NULL ends the table */
    fl_opt_type type;
    void *value; /* holds the default, and then what was given */
    const char *help;
} fl_opt;

/* What the process exits with. */
enum {
    FL_EXIT_OK = 0,
    FL_EXIT_FAILED = 1,
    FL_EXIT_USAGE = 2,
};

/* Under which heading paddle help lists a command. */
typedef enum fl_cmd_group {
    FL_CMD_RUN,   /* runs a job */
    FL_CMD_WATCH, /* shows a job, or what it has left */
    FL_CMD_FILES, /* works with files of data and models */
    FL_CMD_ABOUT, /* tells of this command itself */
    FL_CMD_INNER, /* is started by other commands */
    FL_CMD_GROUPS
} fl_cmd_group;

typedef struct fl_cmd {
    const char *name;
    fl_cmd_group group;
    const char *args; /* what follows the flags, for the help; NULL: nothing */
    const char *help; /* one line */
    const char *examples; /* lines of commands and of what they do, each ended
                             by a newline; NULL: none */
    const fl_opt *opts;
    bool own_flags;                /* flags after the first word are not ours */
    int (*run)(int n, char **arg); /* the words that are no flags */
} fl_cmd;

extern const fl_cmd *const fl_cmds[]; /* ends with NULL */
extern const fl_cmd fl_cmd_agent, fl_cmd_ckpt, fl_cmd_data, fl_cmd_digest,
    fl_cmd_env, fl_cmd_help, fl_cmd_k8s, fl_cmd_launch, fl_cmd_pserver,
    fl_cmd_read, fl_cmd_resume, fl_cmd_show, fl_cmd_state, fl_cmd_version,
    fl_cmd_why;

/* "paddle: sentence" on stderr; with fl_errmsg() behind it when `because`. */
int fl_cli_fail(int code, bool because, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a flag that sets this value was given. */
bool fl_cli_is_given(const void *value);

/* Complain that there is no such command; the exit code. */
int fl_cli_no_command(const char *name);

/* The manual page and completions of shells, on stdout (generate.c). */
enum {
    FL_CLI_LONGEST = 2000 /* bytes of the text of a flag */
};
/* What the help says of a flag, with its default. */
void fl_cli_write_flag(const fl_opt *o, char out[FL_CLI_LONGEST]);

/* The manual page of a command; NULL: of the whole, with all of them. */
void fl_cli_print_man(const fl_cmd *c);
void fl_cli_print_bash(void);
void fl_cli_print_zsh(void);

/* Pages of the docs, on stdout (tables.c). */
void fl_cli_print_ops(fl_engine *e);
void fl_cli_print_layers(fl_engine *e);

#endif
