/* SPDX-License-Identifier: Apache-2.0 */
/* pushes.h - checks what a push contains, before the server accepts it.
 *
 * Every gradient that it names must be one of this server's, with its kind,
 * type, shape and row numbers, and must be finite. A large gradient comes in
 * slices: each of its elements comes once in a step. So the ranges that have
 * come are recorded for each gradient and rank, until the gradient is complete.
 * Thread: that of the state machine. */
#ifndef FL_PSERVER_PUSHES_H
#define FL_PSERVER_PUSHES_H

#include "pserver/update.h"

typedef struct fl_pushes fl_pushes;

typedef struct fl_pushes_opts {
    const fl_map *gradients; /* names that pushes use -> fl_update; borrowed */
    int updates;             /* number of updates: fl_update.number is below */
    bool allow_nan;          /* accept gradients that are not finite */
    const fl_kept *kept;     /* asynchronous pushes are kept; NULL: they are
                                not, or the job is synchronous */
} fl_pushes_opts;

/* Own: new. Free accepts NULL. */
fl_pushes *fl_pushes_new(const fl_pushes_opts *opts);
void fl_pushes_free(fl_pushes *p);

/* Check a push, which is the one part of `by`, and record its slices: all of
 * them, or none if the push is refused. Err: ENOENT, ESHAPE, EINVAL; EPROTO: an
 * element came twice. */
fl_err fl_pushes_check(fl_pushes *p, const fl_staged *by) FL_MUST_CHECK;

/* How many pushes were refused because they were not finite. */
int64_t fl_pushes_not_finite(const fl_pushes *p);

#endif
