/* SPDX-License-Identifier: Apache-2.0 */
/* flag.h - settings of a process from its environment, read when asked for. */
#ifndef FL_BASE_FLAG_H
#define FL_BASE_FLAG_H

#include "base/err.h"

/* A number of at least 0. *out is not changed if the variable is not set or
 * empty. EINVAL: it is something else. */
fl_err fl_flag_number(const char *name, double *out) FL_MUST_CHECK;

/* 1, true, on, yes; 0, false, off, no. EINVAL as above. */
fl_err fl_flag_bool(const char *name, bool *out) FL_MUST_CHECK;

/* Its text; NULL: it is not set. Own: the environment. */
const char *fl_flag_text(const char *name);

/* The names of all variables FLUID_* that users may set, with a NULL at the
 * end. */
extern const char *const fl_flag_names[];

#endif
