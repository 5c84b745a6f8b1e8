/* SPDX-License-Identifier: Apache-2.0 */
/* absent.h - variables that servers hold and trainers have no copy of.
 *
 * A table may be too large for a trainer, and a trainer needs few rows of it at
 * a time. In its scope stands a shape without memory (fl_value_is_absent);
 * plans leave out the ops that would start or receive the table, and look its
 * rows up on the servers, also for a program that was not cut (a test). */
#ifndef FL_EXEC_ABSENT_H
#define FL_EXEC_ABSENT_H

#include "exec/fuse.h"
#include "exec/scope.h"

/* True if every output of the op is a variable that is absent. */
bool fl_absent_only(const fl_op *op);

/* Mark the value of a persistable variable as absent if its program says so and
 * nothing was loaded into it. Called before a plan uses the value. */
void fl_absent_stand_in(const fl_var *var, fl_value *v);

/* Replace each lookup_table op whose table is absent from the scope by an op
 * that asks the servers. Lookups of one table share an op where they can. */
void fl_absent_look_up(fl_lines *l, fl_scope *s);

/* The error for a reader of the elements of an absent variable. */
fl_err fl_absent_fail(const char *name);

#endif
