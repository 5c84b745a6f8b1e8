/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - which asynchronous pushes an owner has applied, in memory that
 * outlives the process.
 *
 * A session has a seat with two copies of its window and a selector. A push is
 * marked in the copy that is not selected; storing the selector makes it count.
 *
 * Thread: the owner. */
#ifndef FL_STATE_WINDOWS_H
#define FL_STATE_WINDOWS_H

#include "state/statedir.h"

typedef struct fl_windows fl_windows;

/* The pushes of a session: 1 to base, and base + 1 + i for each bit i of
 * `ahead`. */
typedef struct fl_seat {
    uint64_t session[2];
    int64_t rank;
    int64_t base;
    uint64_t ahead;
    int64_t step, first; /* the newest step that has a position, and the number
                            of its first push; 0: none */
} fl_seat;

/* Own: *out is new; d outlives it. Err: those of fl_statedir_map. */
fl_err fl_windows_new(fl_statedir *d, int owner,
                      fl_windows **out) FL_MUST_CHECK;
void fl_windows_free(fl_windows *w); /* NULL is fine */

/* Whether the push is marked. */
bool fl_windows_seen(const fl_windows *w, const uint64_t session[2],
                     int64_t seq);

/* Make sure that a push of this session can be marked. Err: ENOMEM: the state
 * has no room, and nothing has changed. */
fl_err fl_windows_reserve(fl_windows *w,
                          const uint64_t session[2]) FL_MUST_CHECK;

/* Mark a push that is not marked; it is at most 64 above `base`. `of` names
 * session and rank, and the step of the push. Err: ENOMEM. */
fl_err fl_windows_mark(fl_windows *w, const fl_seat *of,
                       int64_t seq) FL_MUST_CHECK;

/* The session pushes no more. */
void fl_windows_forget(fl_windows *w, const uint64_t session[2]);

/* The next session; *cursor is 0 at first. False: there is no more. */
bool fl_windows_next(const fl_windows *w, int64_t *cursor, fl_seat *out);

#endif
