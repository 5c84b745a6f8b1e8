/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - names and what they hold at run time.
 *
 * A scope finds names in itself, then in its parents. A value keeps its address
 * until it is erased or the scope is freed, so that plans can hold pointers to
 * values. fl_scope_changes tells a plan that its pointers may be wrong. */
#ifndef FL_EXEC_SCOPE_H
#define FL_EXEC_SCOPE_H

#include "tensor/value.h"

/* Thread: any, for names. A value has no lock: only one thread may use it,
 * unless all only read it. */
struct fl_scope;

fl_scope *fl_scope_root(fl_scope *s);

/* A child scope that the parent does not list. Own: the caller frees it, before
 * the parent. */
fl_scope *fl_scope_private(fl_scope *parent);

uint64_t fl_scope_uid(const fl_scope *s); /* unique in this process */
/* Counts, in this scope and its parents, erased names and new names that may
 * hide a name of a parent. */
uint64_t fl_scope_changes(fl_scope *s);

/* The file that a table with rows by id is loaded from. The table itself is
 * made later, when its server starts to serve. */
fl_err fl_scope_set_file(fl_scope *s, const char *name,
                         const char *path) FL_MUST_CHECK;
const char *fl_scope_file(fl_scope *s, const char *name); /* NULL: none */

#endif
