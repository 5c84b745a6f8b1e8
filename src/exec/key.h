/* key.h - by what a plan is found again: program, scope, names. */
#ifndef FL_EXEC_KEY_H
#define FL_EXEC_KEY_H

#include "exec/scope.h"
#include "graph/program.h"

/* What a run is asked for. */
typedef struct fl_order {
    const fl_program *program;
    fl_scope *scope;
    int n_feeds, n_fetches;
    const fl_feed *feeds;
    const fl_fetch *fetches;
} fl_order;

typedef struct fl_key {
    uint64_t program_uid, program_version, scope_uid, scope_changes;
    int n_feeds, n_fetches;
    const char **feeds, **fetches;
} fl_key;

fl_key fl_key_of(const fl_order *o, fl_arena *a); /* names are copied */

/* The same program, unchanged, on the same scope, and these names in this
 * order? */
bool fl_key_fits(const fl_key *k, const fl_order *o);
bool fl_key_stale(const fl_key *k, const fl_program *p); /* p has changed */

#endif
