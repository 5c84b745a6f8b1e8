/* SPDX-License-Identifier: Apache-2.0 */
/* absent.h - variables that a process has a shape, and no elements, of.
 *
 * A table may be too large for a trainer, which needs only a few rows at a
 * time. The trainer's scope then has a value with a shape and without memory
 * (fl_value_is_absent). Plans leave out the ops that would initialise or
 * receive the table, and ask the servers for its rows; also in a program that
 * was not transpiled, such as a test program.
 *
 * A server that is started again finds its parameters in its state. The startup
 * program then leaves them absent (fl_exec_env's `kept`), until listen_and_serv
 * gives them the memory of the state. */
#ifndef FL_EXEC_ABSENT_H
#define FL_EXEC_ABSENT_H

#include "exec/fuse.h"
#include "exec/scope.h"

/* Whether every output of the op is an absent variable. */
bool fl_absent_only(const fl_op *op);

/* Whether the op does no more than give a large persistable variable its start
 * value, and no other op of its block uses the variable. */
bool fl_absent_start(const fl_op *op);

/* Mark the value of a persistable variable as absent if its program says so and
 * nothing was loaded into it. Called before a plan uses the value. */
void fl_absent_stand_in(const fl_var *var, fl_value *v);

/* Replace each lookup_table op whose table is absent from the scope by an op
 * that asks the servers. Lookups of one table share an op where they can. The
 * three ops that look up a table by id become that op, too, and split_ids of
 * selected rows becomes split_rows. */
void fl_absent_look_up(fl_lines *l, fl_scope *s);

/* The error for a reader of the elements of an absent variable. */
fl_err fl_absent_fail(const char *name);

#endif
