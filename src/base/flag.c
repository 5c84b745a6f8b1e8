/* SPDX-License-Identifier: Apache-2.0 */
/* flag.c - reads environment variables as numbers, booleans or text. */
#include "base/flag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const fl_flag fl_flags[] = {
    {"FLUID_ALLOW_NAN", FL_FLAG_BOOL},
    {"FLUID_COLLECTIVE", FL_FLAG_TEXT},
    {"FLUID_COLLECTIVE_TIMEOUT", FL_FLAG_NUMBER},
    {"FLUID_DURABILITY", FL_FLAG_WORD, {"auto", "memory", "process", "host"}},
    {"FLUID_JOB_KEY_FILE", FL_FLAG_TEXT},
    {"FLUID_JOURNAL_BYTES", FL_FLAG_NUMBER},
    {"FLUID_JOURNAL_DIR", FL_FLAG_TEXT},
    {"FLUID_LEASE", FL_FLAG_POSITIVE},
    {"FLUID_LINGER", FL_FLAG_POSITIVE},
    {"FLUID_NO_FUSE", FL_FLAG_BOOL},
    {"FLUID_OVERLAP", FL_FLAG_BOOL},
    {"FLUID_OWNERS", FL_FLAG_NUMBER},
    {"FLUID_PREFETCH", FL_FLAG_BOOL},
    {"FLUID_REACH", FL_FLAG_POSITIVE},
    {"FLUID_REJOIN", FL_FLAG_NUMBER},
    {"FLUID_REJOIN_FAILED", FL_FLAG_NUMBER},
    {"FLUID_RESTART", FL_FLAG_POSITIVE},
    {"FLUID_RESTORE", FL_FLAG_TEXT},
    {"FLUID_SILENCE", FL_FLAG_NUMBER},
    {"FLUID_SNAPSHOT_DIR", FL_FLAG_TEXT},
    {"FLUID_SNAPSHOT_EVERY", FL_FLAG_POSITIVE},
    {"FLUID_STAGED", FL_FLAG_NUMBER},
    {"FLUID_STALL", FL_FLAG_POSITIVE},
    {"FLUID_START", FL_FLAG_POSITIVE},
    {"FLUID_STATE_DIR", FL_FLAG_TEXT},
    {"FLUID_STATUS", FL_FLAG_WORD, {"off", "lines", "json", "bar"}},
    {"FLUID_TABLE_MEMORY", FL_FLAG_NUMBER},
    {"FLUID_TLS_CA", FL_FLAG_TEXT},
    {"FLUID_TLS_CERT", FL_FLAG_TEXT},
    {"FLUID_TLS_KEY", FL_FLAG_TEXT},
    {"FLUID_TLS_NO_PLUGIN", FL_FLAG_BOOL},
    {"FLUID_TRUST_PROGRAMS", FL_FLAG_BOOL},
    {0},
};

const char *fl_flag_text(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static fl_err read_number(const char *name, const char *text, double *out)
{
    char *end;
    const double number = strtod(text, &end);
    if (*end || !isfinite(number) || number < 0)
        return fl_fail(FL_EINVAL,
                       "%s is \"%s\", expected a number of at least 0", name,
                       text);
    *out = number;
    return FL_OK;
}

static fl_err read_bool(const char *name, const char *text, bool *out)
{
    static const char *const words[] = {"0", "false", "off", "no",
                                        "1", "true",  "on",  "yes"};
    for (int i = 0; i < 8; i++)
        if (!strcasecmp(text, words[i])) {
            *out = i >= 4;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL, "%s is \"%s\", expected 0 or 1", name, text);
}

fl_err fl_flag_number(const char *name, double *out)
{
    const char *text = fl_flag_text(name);
    return text ? read_number(name, text, out) : FL_OK;
}

fl_err fl_flag_bool(const char *name, bool *out)
{
    const char *text = fl_flag_text(name);
    return text ? read_bool(name, text, out) : FL_OK;
}

static fl_err check_word(const fl_flag *f, const char *text)
{
    const char *const *w = f->words;
    for (int i = 0; i < FL_FLAG_WORDS; i++)
        if (!strcmp(text, w[i]))
            return FL_OK;
    return fl_fail(FL_EINVAL, "%s is \"%s\", expected %s, %s, %s or %s",
                   f->name, text, w[0], w[1], w[2], w[3]);
}

fl_err fl_flag_check(const fl_flag *f, const char *text)
{
    double number = 1;
    bool on;
    if (f->kind == FL_FLAG_BOOL)
        return read_bool(f->name, text, &on);
    if (f->kind == FL_FLAG_WORD)
        return check_word(f, text);
    if (f->kind != FL_FLAG_TEXT)
        FL_TRY(read_number(f->name, text, &number));
    if (f->kind == FL_FLAG_POSITIVE && !number)
        return fl_fail(FL_EINVAL, "%s is 0, expected more than 0", f->name);
    return FL_OK;
}

fl_err fl_flags_check(void)
{
    for (const fl_flag *f = fl_flags; f->name; f++)
        if (fl_flag_text(f->name))
            FL_TRY(fl_flag_check(f, fl_flag_text(f->name)));
    return FL_OK;
}
