/* SPDX-License-Identifier: Apache-2.0 */
/* reducer.h - reduces values over all ranks, in buckets, while the caller goes
 * on.
 *
 * Small tensors share a call; large ones and selected rows have their own.
 * Which values share a call depends only on their order and sizes. So it is the
 * same on all ranks and in every run, and the results have the same bits.
 *
 * With overlap a thread makes the calls while the caller goes on. Without it
 * the caller makes them in fl_reducer_wait. The order of the calls is the same.
 */
#ifndef FL_COLLECTIVE_REDUCER_H
#define FL_COLLECTIVE_REDUCER_H

#include "collective/backend.h"
#include "tensor/value.h"

typedef struct fl_reducer fl_reducer; /* Thread: one at a time */

/* Returns true to end a wait. */
typedef bool fl_interrupt(void *user);

fl_reducer *fl_reducer_new(fl_backend *b, int ranks, int rank, bool overlap);
/* Stops the thread; calls that it has not begun are not made. */
void fl_reducer_free(fl_reducer *r);

typedef struct fl_reduction {
    fl_reduce how;
    const char *var; /* lives until the wait is over */
    fl_value *value; /* a tensor, or selected rows, to which the rows of the
                      * other ranks are added, in order of rank. The caller
                      * must not use it until the wait is over. */
    bool *pending;   /* true until the wait is over */
} fl_reduction;

/* Err: ETYPE, EINVAL (only sums of selected rows). */
fl_err fl_reducer_add(fl_reducer *r, const fl_reduction *x) FL_MUST_CHECK;

/* All values that were added have their results. `interrupted` is asked ten
 * times a second, on the thread of the caller. Err: as the calls of the
 * backend. */
fl_err fl_reducer_wait(fl_reducer *r, fl_interrupt *interrupted,
                       void *user) FL_MUST_CHECK;

/* The thread stops, and values that were added are not touched any more. */
void fl_reducer_stop(fl_reducer *r);

/* Whether the call that is being made should stop, for the waits of the
 * backend. Thread: the one that makes the call. */
bool fl_reducer_stops(const fl_reducer *r);

int64_t fl_reducer_steps(const fl_reducer *r); /* waits that had values */

#endif
