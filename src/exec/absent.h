/* absent.h - variables of a trainer that servers hold, and nobody else.
 *
 * A table may be too large for a trainer, and a trainer needs few rows of it at
 * a time. In its scope stands a shape without memory (fl_value_is_absent);
 * plans leave out the ops that would start or receive the table, and look its
 * rows up on the servers, also for a program that was not cut (a test). */
#ifndef FL_EXEC_ABSENT_H
#define FL_EXEC_ABSENT_H

#include "exec/fuse.h"
#include "exec/scope.h"

/* Does the op write nothing but what its program's trainer has no copy of? */
bool fl_absent_only(const fl_op *op);

/* A persistable variable's value before a plan uses it. */
void fl_absent_stand_in(const fl_var *var, fl_value *v);

/* lookup_tables of what is away in the scope ask servers; those that can go
 * together do. */
void fl_absent_look_up(fl_lines *l, fl_scope *s);

/* The sentence for who wants elements of such a variable. */
fl_err fl_absent_fail(const char *name);

#endif
