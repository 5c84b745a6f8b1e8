/* SPDX-License-Identifier: Apache-2.0 */
/* flag.c - reads environment variables as numbers, booleans or text. */
#include "base/flag.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

const char *const fl_flag_names[] = {
    "FLUID_ALLOW_NAN",
    "FLUID_COLLECTIVE",
    "FLUID_COLLECTIVE_TIMEOUT",
    "FLUID_DURABILITY",
    "FLUID_JOB_KEY_FILE",
    "FLUID_JOURNAL_BYTES",
    "FLUID_JOURNAL_DIR",
    "FLUID_LEASE",
    "FLUID_LINGER",
    "FLUID_NO_FUSE",
    "FLUID_OVERLAP",
    "FLUID_OWNERS",
    "FLUID_PREFETCH",
    "FLUID_REACH",
    "FLUID_REJOIN",
    "FLUID_REJOIN_FAILED",
    "FLUID_RESTART",
    "FLUID_RESTORE",
    "FLUID_SILENCE",
    "FLUID_SNAPSHOT_DIR",
    "FLUID_SNAPSHOT_EVERY",
    "FLUID_STAGED",
    "FLUID_STALL",
    "FLUID_START",
    "FLUID_STATE_DIR",
    "FLUID_STATUS",
    "FLUID_TABLE_MEMORY",
    "FLUID_TLS_CA",
    "FLUID_TLS_CERT",
    "FLUID_TLS_KEY",
    "FLUID_TRUST_PROGRAMS",
    NULL,
};

const char *fl_flag_text(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

fl_err fl_flag_number(const char *name, double *out)
{
    const char *text = fl_flag_text(name);
    char *end;
    if (!text)
        return FL_OK;
    const double number = strtod(text, &end);
    if (*end || !isfinite(number) || number < 0)
        return fl_fail(FL_EINVAL,
                       "%s is \"%s\", expected a number of at least 0", name,
                       text);
    *out = number;
    return FL_OK;
}

fl_err fl_flag_bool(const char *name, bool *out)
{
    static const char *const words[] = {"0", "false", "off", "no",
                                        "1", "true",  "on",  "yes"};
    const char *text = fl_flag_text(name);
    if (!text)
        return FL_OK;
    for (int i = 0; i < 8; i++)
        if (!strcasecmp(text, words[i])) {
            *out = i >= 4;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL, "%s is \"%s\", expected 0 or 1", name, text);
}
