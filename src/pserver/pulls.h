/* SPDX-License-Identifier: Apache-2.0 */
/* pulls.h - the variables of a store that may be pulled, and how its owners
 * answer a pull.
 *
 * A pull is a task for every owner of a variable that it names, behind the
 * rounds that the owner has to apply first; the owner that finishes last sends
 * the answer. Whole tensors are shared, not copied: an owner copies a tensor
 * before it writes to one that is still being sent. A tensor that is kept
 * (kept.h) is copied for the first pull after each change, and later pulls
 * share the copy. While nothing is being applied, no owner writes: then a few
 * rows are read by the caller, which saves waking an owner. */
#ifndef FL_PSERVER_PULLS_H
#define FL_PSERVER_PULLS_H

#include "protocol/server.h"
#include "pserver/kept.h"
#include "table/table.h"

typedef struct fl_pulls fl_pulls;

typedef struct fl_pulls_opts {
    int owners;        /* number of owner threads */
    size_t max_answer; /* bytes of values in an answer; 0: as many as a message
                          can carry */
    /* Run fn(arg) on the thread of an owner, after the tasks that it has. */
    void (*submit)(void *store, int owner, void (*fn)(void *arg), void *arg);
    void *store;
    /* Send the answer to a pull; m is borrowed. Thread: an owner's, or the
     * caller of fl_pulls_read. */
    void (*answer)(void *self, fl_peer to, const fl_msg *m);
    void *self;
} fl_pulls_opts;

/* Own: new. Free accepts NULL; no task of a pull may be left. */
fl_pulls *fl_pulls_new(const fl_pulls_opts *opts);
void fl_pulls_free(fl_pulls *p);

/* --- before the first pull --- */

/* Add a variable, which belongs to owner 0. Name and value outlive the pulls.
 */
void fl_pulls_add(fl_pulls *p, const char *name, fl_value *v);

/* The owner of a variable; -1: it may not be pulled. */
int fl_pulls_owner(const fl_pulls *p, const char *name);

/* Name another owner of a variable that was added. */
void fl_pulls_assign(fl_pulls *p, const char *name, int owner);

/* The variable lies in the rows of a table. `state`: index of a state, or
 * FL_TABLE_VALUE. */
void fl_pulls_in_rows(fl_pulls *p, const char *name, fl_table *t, int state);

/* The variable is kept, so that pulls share a copy of it. *changes counts how
 * often the value was written: the copy is made anew when it has grown. `kept`:
 * where it allows so, pulls share the memory of a large value itself; NULL:
 * never. */
void fl_pulls_keep(fl_pulls *p, const char *name, const int64_t *changes,
                   fl_kept *kept);

/* --- pulls --- */

/* Answer a pull of `names` with `reply`, whose pointers are NULL. idle: nothing
 * is being applied, and nothing will be before this returns. */
void fl_pulls_read(fl_pulls *p, fl_blob names, fl_peer to, const fl_msg *reply,
                   bool idle);

#endif
