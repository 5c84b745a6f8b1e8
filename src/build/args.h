/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - tables of arguments, and calls bound to them.
 *
 * Layers, optimisers and schedules say in a table what they take. A call's
 * fl_arg list is bound to the table once; after that arguments are read by
 * name. Defaults are texts in Python's form, so that a front can show them. */
#ifndef FL_BUILD_ARGS_H
#define FL_BUILD_ARGS_H

#include "base/arena.h"
#include "base/err.h"

enum {
    FL_ARGS = 24, /* arguments of a table at most */
};

/* A call. Lists are borrowed from the caller; what binding makes (defaults,
 * lists of one) lies in the arena. */
typedef struct fl_bound {
    const char *what; /* the layer, for sentences */
    const fl_arg_def *def;
    fl_arg value[FL_ARGS]; /* in the table's order; n of a list is set */
    bool given[FL_ARGS];   /* has a value: not None */
} fl_bound;

/* EINVAL: an unknown name (with the nearest one), a name given twice, a
 * required argument missing, NULL where a value must be. */
fl_err fl_args_bind(fl_arena *a, const char *what, const fl_arg_def *def,
                    const fl_arg *args, fl_bound *out) FL_MUST_CHECK;

/* Arguments by name, which must be in the table (an assertion). None reads as
 * 0, false or NULL. */
bool fl_arg_given(const fl_bound *b, const char *name); /* not None */
const fl_arg *fl_arg_get(const fl_bound *b, const char *name);
int64_t fl_arg_int(const fl_bound *b, const char *name);
double fl_arg_float(const fl_bound *b, const char *name);
bool fl_arg_bool(const fl_bound *b, const char *name);
const char *fl_arg_str(const fl_bound *b, const char *name);
fl_dtype fl_arg_dtype(const fl_bound *b, const char *name);
fl_var *fl_arg_var(const fl_bound *b, const char *name);
/* n may come out as 0. */
fl_var *const *fl_arg_vars(const fl_bound *b, const char *name, int *n);
const int64_t *fl_arg_ints(const fl_bound *b, const char *name, int *n);
const double *fl_arg_floats(const fl_bound *b, const char *name, int *n);

/* Is this argument in the table? */
bool fl_arg_known(const fl_arg_def *def, const char *name);

#endif
