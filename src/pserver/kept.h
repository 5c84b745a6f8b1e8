/* SPDX-License-Identifier: Apache-2.0 */
/* kept.h - the values of a store, in memory that outlives the process.
 *
 * A value that is kept is a tensor as all others, whose memory lies in the
 * state directory. Its owner writes it in place, block by block, behind the
 * undo log of the owner (state/undo.h). A pull may share the memory if the
 * value has a second slot (state/dense.h): the owner goes on in that one while
 * the pull still reads the first. */
#ifndef FL_PSERVER_KEPT_H
#define FL_PSERVER_KEPT_H

#include "protocol/server.h"
#include "state/dense.h"
#include "state/extents.h"
#include "state/undo.h"
#include "state/windows.h"
#include "tensor/value.h"

typedef struct fl_kept fl_kept;

enum {
    FL_GUARD_BLOCK = 8192, /* bytes of each tensor that are a block: old and new
                              bytes and the gradient fit the nearest cache */
};
#define FL_GUARD_PLAN INT64_C(0xfffffffe) /* the block that a plan writes */

/* The undo log of an owner and the memory that it guards. */
typedef struct fl_guard {
    fl_undo *undo;
    const fl_dense *dense;
    fl_windows *windows; /* pushes that the owner has applied; NULL:
                            synchronous */
} fl_guard;

/* Own: *out is new; dir outlives it. Err: those of fl_undo_new. */
fl_err fl_kept_new(fl_statedir *dir, int owners, bool async,
                   fl_kept **out) FL_MUST_CHECK;
void fl_kept_free(fl_kept *k); /* NULL is fine; the values keep their memory */

/* Add a tensor that has elements. `owner`: whose copy of the variable it is. */
void fl_kept_add(fl_kept *k, const char *name, int owner, fl_value *v);

/* Move all values that were added into the state; or, if the state was found,
 * let them have what it holds. Err: those of fl_dense_map. */
fl_err fl_kept_map(fl_kept *k) FL_MUST_CHECK;

/* Whether a pull may share the value's memory: its other slot has room, and
 * nobody reads it. Thread: the owner of the value. */
bool fl_kept_may_share(fl_kept *k, const fl_value *v);

/* Before the owner writes a value whose memory a pull shares: the value moves
 * to its other slot. */
fl_err fl_kept_claim(fl_kept *k, fl_value *v) FL_MUST_CHECK;

/* Whether the value lies in the state. */
bool fl_kept_has(const fl_kept *k, const fl_value *v);

const fl_guard *fl_kept_guard(const fl_kept *k, int owner);

/* Take back what a kill left half written; see fl_undo_recover. A push that an
 * owner has marked is finished. */
fl_err fl_kept_recover(fl_kept *k, const fl_extents *tables) FL_MUST_CHECK;

/* Asynchronous, after a restart: tell the machine which pushes all owners have
 * applied, and which ones were applied in part. */
void fl_kept_resume(fl_kept *k, fl_server *server);

/* Whether the session began before this process: fl_kept_resume has found it.
 */
bool fl_kept_is_earlier(const fl_kept *k, fl_id session);

/* Add bytes of a kept value to the undo log; see fl_undo_add. */
fl_err fl_guard_add(const fl_guard *g, const void *at,
                    size_t bytes) FL_MUST_CHECK;
fl_err fl_guard_add_value(const fl_guard *g, const fl_value *v) FL_MUST_CHECK;

#endif
