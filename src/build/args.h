/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - tables of arguments, and calls bound to them.
 *
 * Layers, optimisers and schedules list their arguments in a table. A call's
 * fl_arg list is bound to the table once; after that arguments are read by
 * name. Defaults are texts in Python's form, so that a front end can show
 * them. */
#ifndef FL_BUILD_ARGS_H
#define FL_BUILD_ARGS_H

#include "base/arena.h"
#include "base/err.h"

enum {
    FL_ARGS = 24, /* largest number of arguments in a table */
};

/* A call. Lists are borrowed from the caller. What binding creates (defaults,
 * lists of one element) is in the arena. */
typedef struct fl_bound {
    const char *what; /* name of the layer, for error messages */
    const fl_arg_def *def;
    fl_arg value[FL_ARGS]; /* values in the order of the table; the length n of
                              a list is always set */
    bool given[FL_ARGS];   /* the argument has a value other than None */
} fl_bound;

/* Err: EINVAL: an unknown name (the message suggests the nearest one), a name
 * that is given twice, a required argument that is missing, or NULL where a
 * value is required. */
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
/* *n may become 0. */
fl_var *const *fl_arg_vars(const fl_bound *b, const char *name, int *n);
const int64_t *fl_arg_ints(const fl_bound *b, const char *name, int *n);
const double *fl_arg_floats(const fl_bound *b, const char *name, int *n);

/* Whether the table has this argument. */
bool fl_arg_known(const fl_arg_def *def, const char *name);

#endif
