/* scope.h - names and what they hold at run time.
 *
 * A scope finds names in itself, then in its parents. Values keep their place
 * in memory until they are erased or the scope ends, so plans hold pointers to
 * them; `changes` counts what makes such pointers stale. */
#ifndef FL_EXEC_SCOPE_H
#define FL_EXEC_SCOPE_H

#include "tensor/value.h"

/* Thread: lock (names); a value belongs to whoever runs on it. */
struct fl_scope;

fl_scope *fl_scope_child(fl_scope *parent); /* ends with its parent */
void fl_scope_drop_kids(fl_scope *s);

fl_value *fl_scope_var(fl_scope *s, const char *name);  /* here; made if new */
fl_value *fl_scope_find(fl_scope *s, const char *name); /* NULL: nowhere */
bool fl_scope_erase(fl_scope *s, const char *name);     /* here */
fl_scope *fl_scope_root(fl_scope *s);

/* For lists of names: calls fn for each, in order of creation. */
void fl_scope_each(fl_scope *s,
                   void (*fn)(void *self, const char *name, fl_value *v),
                   void *self);

uint64_t fl_scope_uid(const fl_scope *s);     /* no two scopes share one */
uint64_t fl_scope_changes(const fl_scope *s); /* erasures, parents' too */

#endif
