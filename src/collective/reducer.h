/* SPDX-License-Identifier: Apache-2.0 */
/* reducer.h - values of all ranks are added up in buckets, beside the work.
 *
 * Small tensors share a call; large ones and selected rows have their own. What
 * shares a call depends only on the order and the sizes of the values that are
 * given, so it is the same on all ranks and in every run; so are the bits.
 *
 * With overlap a thread makes the calls while the caller goes on. Without it
 * the caller makes them in fl_reducer_wait. The order of the calls is the same.
 */
#ifndef FL_COLLECTIVE_REDUCER_H
#define FL_COLLECTIVE_REDUCER_H

#include "collective/backend.h"
#include "tensor/value.h"

typedef struct fl_reducer fl_reducer; /* Thread: one at a time */

/* How a caller looks at a wait; NULL: nobody does. */
typedef bool fl_interrupt(void *user);

fl_reducer *fl_reducer_new(fl_backend *b, int ranks, int rank, bool overlap);
/* Stops the thread; the calls that it has not made are not made. */
void fl_reducer_free(fl_reducer *r);

typedef struct fl_reduction {
    fl_reduce how;
    const char *var; /* lives until the wait is over */
    fl_value *value; /* a tensor, or selected rows that get the rows of all
                      * ranks, in their order; not touched by the caller until
                      * the wait is over */
    bool *pending;   /* true until the wait is over */
} fl_reduction;

/* Err: ETYPE, EINVAL (only sums of selected rows). */
fl_err fl_reducer_add(fl_reducer *r, const fl_reduction *x) FL_MUST_CHECK;

/* All values that were added have their results. `interrupted` is asked ten
 * times a second while the thread works. Err: as the calls of the backend. */
fl_err fl_reducer_wait(fl_reducer *r, fl_interrupt *interrupted,
                       void *user) FL_MUST_CHECK;

/* The thread stops, and values that were added are not touched any more. */
void fl_reducer_stop(fl_reducer *r);

/* Whether the thread should stop, for the waits of the backend on it. */
bool fl_reducer_stopped(const fl_reducer *r);

/* Whether the caller itself makes the calls now. */
bool fl_reducer_direct(const fl_reducer *r);

int64_t fl_reducer_steps(const fl_reducer *r); /* waits that had values */

#endif
