/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - names and what they hold at run time.
 *
 * A scope finds names in itself, then in its parents. Values keep their place
 * in memory until they are erased or the scope ends, so plans hold pointers to
 * them; `changes` counts what makes such pointers wrong. */
#ifndef FL_EXEC_SCOPE_H
#define FL_EXEC_SCOPE_H

#include "tensor/value.h"

/* Thread: lock (names); a value belongs to whoever runs on it. */
struct fl_scope;

fl_scope *fl_scope_root(fl_scope *s);

/* A scope below its parent, of which the parent does not know: it is the
 * caller's to free, before the parent. */
fl_scope *fl_scope_private(fl_scope *parent);

uint64_t fl_scope_uid(const fl_scope *s); /* no two scopes share one */
/* Erasures and names that may hide a parent's; here and in the parents. */
uint64_t fl_scope_changes(fl_scope *s);

/* A table by id is made when its server starts to serve. Until then the scope
 * has a note of the file from which the variable shall start. */
fl_err fl_scope_set_file(fl_scope *s, const char *name,
                         const char *path) FL_MUST_CHECK;
const char *fl_scope_file(fl_scope *s, const char *name); /* or NULL */

#endif
