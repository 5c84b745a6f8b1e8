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

/* The names of all variables FLUID_* that users may set, with a NULL at the
 * end. */
extern const char *const fl_flag_names[];

#endif
