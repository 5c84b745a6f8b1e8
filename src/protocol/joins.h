/* SPDX-License-Identifier: Apache-2.0 */
/* joins.h - trainers that have asked for a rank and wait for it.
 *
 * A JOIN is parked until a rank is free for it. If the rank that it claims is
 * held, the holder is sent PROBE: it may be the dead session of the same
 * process. It answers parked JOINs and turns away those that can never get
 * their rank; to grant one is the coordinator's. A pure state machine: time is
 * a parameter, and messages go to an outbox. Thread: one at a time. */
#ifndef FL_PROTOCOL_JOINS_H
#define FL_PROTOCOL_JOINS_H

#include "protocol/members.h"

typedef struct fl_joins fl_joins;

/* A JOIN that is parked. Only fl_joins changes it. */
typedef struct fl_join {
    fl_id session;
    int claim; /* the rank it asks for, or FL_ANY_ID */
    bool explicit_id;
    uint64_t call, tag;
    int64_t since;
    uint64_t asked; /* PROBE that the holder must answer to count as alive; 0:
                       none was sent */
    char who[FL_MEMBERS_WHO]; /* host:pid */
} fl_join;

/* `job`, `members` and `out` must outlive it. Own: new. */
fl_joins *fl_joins_new(const fl_job *job, const fl_members *members,
                       fl_outbox *out);
void fl_joins_free(fl_joins *j);

/* The coordinator was started again: a PROBE of an earlier start proves
 * nothing, so that numbers begin above all of theirs. */
void fl_joins_restart(fl_joins *j);

/* --- a JOIN is parked --- */

/* Park m, a JOIN for a rank of the job or for any. False: too many are parked.
 */
bool fl_joins_park(fl_joins *j, fl_peer from, const fl_msg *m, int64_t now);

/* Take m, a JOIN of a session that has one parked already: it keeps its place,
 * and an older call is answered PARKED with the reason of the wait. `round`:
 * the open one. False: the session has none parked. */
bool fl_joins_repeat(fl_joins *j, fl_peer from, const fl_msg *m, int64_t round,
                     int64_t now);

/* Park the call of any request, so that it is answered by the end of the job.
 */
void fl_joins_hold(fl_joins *j, fl_peer from, const fl_msg *m, int64_t now);

/* --- it leaves --- */

/* Forget the JOIN of a session, if it has one, and answer it PARKED. */
void fl_joins_forget(fl_joins *j, fl_id session, const char *why);

/* Forget the JOINs on a call that broke. */
void fl_joins_hangup(fl_joins *j, uint64_t call);

/* The next JOIN that can have a rank now, and that rank; it is no longer
 * parked. `at` is 0 at first, and moves. JOINs before it whose explicit id is
 * done, or held by a process that lives, are answered ERROR; the holder is
 * warned. NULL: there is none any more. */
const fl_rank *fl_joins_next(fl_joins *j, int64_t *at, int64_t now,
                             fl_join *out);

int fl_joins_count(const fl_joins *j);
const fl_join *fl_joins_get(const fl_joins *j, int i); /* by arrival; borrowed
                                                        */
void fl_joins_clear(fl_joins *j);

/* --- their holders --- */

/* Send PROBE to the holders of ranks that JOINs claim and wait for, again after
 * job->retry. */
void fl_joins_probe(fl_joins *j, int64_t now);

uint64_t fl_joins_last_probe(const fl_joins *j); /* its number */

/* Append a row for each JOIN that waits: fl_wait_row. */
void fl_joins_waits(const fl_joins *j, int64_t now, fl_str *rows);

#endif
