/* SPDX-License-Identifier: Apache-2.0 */
/* flag.h - settings of a process from environment variables, which each call
 * reads. */
#ifndef FL_BASE_FLAG_H
#define FL_BASE_FLAG_H

#include "base/err.h"

/* Read a number, 0 or more. *out is not changed if the variable is not set or
 * empty. Err: EINVAL: its value is no such number. */
fl_err fl_flag_number(const char *name, double *out) FL_MUST_CHECK;

/* Read a truth value: 1, true, on or yes; 0, false, off or no. Err: EINVAL. */
fl_err fl_flag_bool(const char *name, bool *out) FL_MUST_CHECK;

/* The text of the variable; NULL: not set. Own: the environment. */
const char *fl_flag_text(const char *name);

typedef enum fl_flag_kind {
    FL_FLAG_TEXT,
    FL_FLAG_NUMBER,   /* as fl_flag_number */
    FL_FLAG_POSITIVE, /* and not 0 */
    FL_FLAG_BOOL,     /* as fl_flag_bool */
    FL_FLAG_WORD,     /* one of `words` */
} fl_flag_kind;

enum {
    FL_FLAG_WORDS = 4
};

typedef struct fl_flag {
    const char *name;
    fl_flag_kind kind;
    const char *words[FL_FLAG_WORDS];
} fl_flag;

/* All variables FLUID_* that users may set. A name that is NULL ends them. */
extern const fl_flag fl_flags[];

/* Whether a process would accept this value, which is not empty. Err: EINVAL.
 */
fl_err fl_flag_check(const fl_flag *f, const char *text) FL_MUST_CHECK;

/* Check all variables of the table that are set. Err: EINVAL. */
fl_err fl_flags_check(void) FL_MUST_CHECK;

#endif
