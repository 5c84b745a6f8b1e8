/* SPDX-License-Identifier: Apache-2.0 */
/* paddle data - look at files of examples before a job does. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SHOWN = 16, /* bad lines of a file that a reader keeps */
    SLOTS = 4096,
    NUMBERS = 13, /* of a Criteo line */
    CATEGORIES = 26,
    BATCH = 256,
};

static const char *slots_text, *pipe_command;
static bool criteo;
static int show = 10;

static const fl_opt opts[] = {
    {"slots", FL_OPT_STR, &slots_text,
     "the slots of a line in order, for example id:u64,weight:f32; a dense "
     "slot has a size: x:f32[13]"},
    {"criteo", FL_OPT_FLAG, &criteo, "the lines are raw Criteo click logs"},
    {"pipe_command", FL_OPT_STR, &pipe_command,
     "shell command that converts each file; its output is checked"},
    {"show", FL_OPT_INT, &show,
     "number of bad lines to show for each file, at most 16"},
    {0},
};

static bool is_word(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(p, word, n);
}

/* "name:type" or "name:type[n]" of `text`, a word of the command line, of which
 * the name is cut off; false: neither, and nothing is cut. */
static bool read_slot(char *text, fl_data_slot *out)
{
    char *colon = strrchr(text, ':'), *end = NULL;
    if (!colon || colon == text)
        return false;
    const char *type = colon + 1;
    const size_t n = strcspn(type, "[");
    *out = (fl_data_slot){.name = text, .sparse = !type[n], .dtype = FL_I64};
    if (is_word(type, n, "f32") || is_word(type, n, "float"))
        out->dtype = FL_F32;
    else if (!is_word(type, n, "u64") && !is_word(type, n, "uint64") &&
             !is_word(type, n, "i64"))
        return false;
    if (!out->sparse) {
        out->shape = (fl_shape){2, {-1, strtol(type + n + 1, &end, 10)}};
        if (end == type + n + 1 || strcmp(end, "]"))
            return false;
    }
    *colon = 0;
    return true;
}

/* How many; -1 after a complaint. */
static int read_slots(char *text, fl_data_slot *out)
{
    int n = 0;
    for (char *rest, *s = strtok_r(text, ", ", &rest); s;
         s = strtok_r(NULL, ", ", &rest), n++)
        if (n == SLOTS || !read_slot(s, &out[n])) {
            fl_cli_fail(FL_EXIT_USAGE, false,
                        "slot %d of --slots is \"%s\", expected name:u64, "
                        "name:f32 or name:f32[13]",
                        n + 1, s);
            return -1;
        }
    return n;
}

static int criteo_slots(fl_data_slot *out)
{
    out[0] = (fl_data_slot){"numbers", FL_F32, .shape = {2, {-1, NUMBERS}}};
    for (int i = 1; i < CATEGORIES + 2; i++)
        out[i] = (fl_data_slot){"id", FL_I64, .sparse = true};
    return CATEGORIES + 2;
}

static fl_err read_all(fl_reader *r)
{
    static fl_tensor batch[SLOTS];
    int64_t rows = 1;
    fl_err err = FL_OK;
    while (rows && !err)
        err = fl_reader_next(r, batch, &rows);
    for (int i = 0; i < SLOTS; i++)
        fl_tensor_fini(&batch[i]);
    return err;
}

/* What is wrong with a file, on stdout. True: nothing. */
static bool check_file(fl_dataset *d, const fl_dataset_opts *o)
{
    fl_reader *r;
    if (fl_dataset_set(d, o) || fl_dataset_open(d, 1, NULL, &r))
        return printf("%s: %s\n", o->files[0], fl_errmsg()), false;
    const fl_err err = read_all(r);
    const fl_reader_stats s = fl_reader_look(r);
    for (int i = 0; i < show && fl_reader_bad_line(r, i); i++)
        printf("%s\n", fl_reader_bad_line(r, i));
    if (err)
        printf("%s\n", fl_errmsg());
    printf("%s: %lld good lines, %lld bad%s\n", o->files[0],
           (long long)s.examples, (long long)s.bad_lines,
           err ? "; reading stopped at an error" : "");
    fl_reader_free(r);
    return !err && !s.bad_lines;
}

static int check_files(int n, char **files)
{
    static fl_data_slot slots[SLOTS];
    fl_dataset_opts o = {
        .n_slots = criteo ? criteo_slots(slots)
                          : read_slots((char *)slots_text, slots),
        .slots = slots,
        .pipe = pipe_command,
        .criteo = criteo ? &(fl_criteo){.dim = 1000001} : NULL,
        .batch = BATCH,
        .bad_lines = INT64_MAX,
    };
    if (o.n_slots < 0)
        return FL_EXIT_USAGE;
    int bad = 0;
    fl_dataset *d = fl_dataset_new();
    const bool wrong = fl_dataset_set(d, &o); /* whatever the files are */
    o.n_files = 1;
    for (int i = 0; i < n && !wrong; i++) {
        o.files = (const char *const *)&files[i];
        bad += !check_file(d, &o);
    }
    fl_dataset_free(d);
    return wrong ? fl_cli_fail(FL_EXIT_USAGE, true, "data")
           : bad ? FL_EXIT_FAILED
                 : FL_EXIT_OK;
}

static int run_data(int n, char **arg)
{
    if (n < 2 || strcmp(arg[0], "check"))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "data: expected check FILE..; see paddle help "
                           "data");
    if (show < 0 || show > MOST_SHOWN)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "data: --show is %d, expected 0 to %d", show,
                           MOST_SHOWN);
    if (slots_text && criteo)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "data check takes either --slots or --criteo, got "
                           "both: --criteo says what a line has");
    if (!slots_text && !criteo)
        return fl_cli_fail(
            FL_EXIT_USAGE, false,
            "data check needs --slots or --criteo, which say what "
            "a line has; see paddle help data");
    return check_files(n - 1, arg + 1);
}

const fl_cmd fl_cmd_data = {
    .name = "data",
    .group = FL_CMD_FILES,
    .args = "check FILE...",
    .help = "check files of examples and show their first bad lines",
    .examples = "paddle data check --slots ids:u64,label:f32 train-*\n"
                "paddle data check --criteo day_0\n"
                "    exit code 1 if a line is bad\n",
    .opts = opts,
    .run = run_data,
};
