/* SPDX-License-Identifier: Apache-2.0 */
/* coord.h - the coordinator: who is a member, and what each round consists of.
 *
 * A pure state machine: messages and ticks go in, answers and log lines come
 * out through the outbox. It runs in the process of server 0. It alone grants
 * ranks and leases, numbers the views, and decides P(k), the members whose
 * gradients make version k + 1. Thread: one at a time. */
#ifndef FL_PROTOCOL_COORD_H
#define FL_PROTOCOL_COORD_H

#include "protocol/history.h"
#include "protocol/message.h"

typedef struct fl_coord fl_coord;

/* `state` is that of server 0; `job` comes from fl_job_defaults. `job` and
 * `out` must outlive the coordinator. Own: new. */
fl_coord *fl_coord_new(const fl_job *job, fl_state state, fl_outbox *out,
                       int64_t now);
void fl_coord_free(fl_coord *c);

/* --- what outlives the process --- */

/* Has anything changed that is in the image, since the last image was made? The
 * driver saves one before it sends what is in the outbox. */
bool fl_coord_changed(const fl_coord *c);

/* Append the image. Calls, parked JOINs and times are not in it. */
void fl_coord_image(fl_coord *c, fl_str *to);

/* Go on from an image, right after fl_coord_new. Nobody is lost because the
 * coordinator was away: every lease begins anew, with some seconds more, and so
 * does the time to rejoin of every lost rank. Err: EPROTO: the image cannot be
 * used; then nothing but fl_coord_free may be called. */
fl_err fl_coord_restore(fl_coord *c, const void *image, size_t n,
                        int64_t now) FL_MUST_CHECK;

/* --- snapshots and going back --- */

/* After fl_coord_restore: let the servers take a snapshot every `every` ns.
 * Numbers begin behind `last`. `found` has n rows, for the whole snapshots that
 * are there. */
void fl_coord_snapshots(fl_coord *c, int64_t every, int64_t last,
                        const fl_history_origin *found, int64_t n, int64_t now);

/* What a snapshot has of the coordinator: ranks, positions, and the round. */
typedef struct fl_coord_moment {
    int64_t number;
    int64_t version; /* synchronous: of the values */
    int64_t generation;
    const void *image; /* for fl_coord_rewind; borrowed until the next event */
    size_t n;
} fl_coord_moment;

/* Whether all servers have written a snapshot that is not committed yet. */
bool fl_coord_written(const fl_coord *c, fl_coord_moment *out);

/* It is committed, and the job can go back to it. `oldest`: the oldest whole
 * one that is left; 0: this one is given up. */
void fl_coord_committed(fl_coord *c, int64_t number, int64_t oldest);

/* Begin where snapshot `base` was taken, right after fl_coord_new. `anew`: all
 * trainers are started again; else those that had completed when it was taken
 * need not come back. Err: EPROTO: the image cannot be used. */
fl_err fl_coord_rewind(fl_coord *c, const void *image, size_t n, int64_t base,
                       bool anew) FL_MUST_CHECK;

/* The snapshot that the job goes back to, because a server has lost its state,
 * and the generation that begins with it; 0: none. The driver then makes
 * coordinator and server anew. */
int64_t fl_coord_rewinds(const fl_coord *c, int64_t *generation);

/* Server 0 cannot restore that snapshot: the job goes back to an older one, or
 * ends. */
void fl_coord_cannot_rewind(fl_coord *c, const char *why, int64_t now);

/* The newest snapshot that a server could not restore, so that the job goes
 * back to an older one; 0: none. */
int64_t fl_coord_damaged(const fl_coord *c);

/* --- events --- */

/* A message arrived. `from` is the call that it arrived on, or the server. */
void fl_coord_recv(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);

/* Some process says that it is this server, and cannot prove it yet. The server
 * is sent what it must know, but no more often than any other: its answer, by
 * which it proves itself, then comes at once. */
void fl_coord_greet(fl_coord *c, int server, int64_t now);

/* The rank of the member that sent m. If the sender is no member, it is
 * answered and the result is -1. For TALLY,
 * which the coordinator does not answer itself. */
int fl_coord_admit(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);

/* A call broke. A JOIN parked on it is forgotten; a member whose open call it
 * was is lost after job->broken, unless it renews its lease before. */
void fl_coord_hangup(fl_coord *c, uint64_t call, int64_t now);

/* A server cannot be reached. Some time after END this counts as an answer to
 * END; if the job has failed, also of a server that was never heard. Before
 * END: if the server has been heard before and its host has reported for
 * job->gone that no process listens on the port, the job ends. */
void fl_coord_refused(fl_coord *c, int server, bool no_listener, int64_t now);

/* Time passes: to be called several times a second. A gap of more than
 * a third of the lease means that this process itself was stopped; all leases
 * are extended by the gap. */
void fl_coord_tick(fl_coord *c, int64_t now);

/* End the job now, for instance because of a signal. */
void fl_coord_end(fl_coord *c, int code, const char *why, int64_t now);

/* The job has ended, and every server has acknowledged that or had enough time
 * to do so: the process may exit. */
bool fl_coord_over(const fl_coord *c, int64_t now);

/* The job has ended, and every server has acknowledged that, and was told that
 * its acknowledgement came, or cannot be reached (fl_coord_refused). */
bool fl_coord_told(const fl_coord *c);

/* True once the job has ended; *code and *why (borrowed) are then END's. */
bool fl_coord_ended(const fl_coord *c, int *code, const char **why);

/* Append a row for each wait that the coordinator knows: fl_wait_row. */
void fl_coord_waits(const fl_coord *c, int64_t now, fl_str *rows);

int64_t fl_coord_round(const fl_coord *c); /* the open round */
int64_t fl_coord_view(const fl_coord *c);
int fl_coord_done(const fl_coord *c);                /* ranks that are done */
int fl_coord_parked(const fl_coord *c);              /* parked JOINs */
bool fl_coord_has(const fl_coord *c, fl_id session); /* is it a member? */
int fl_coord_members(const fl_coord *c, fl_member *out); /* by rank */

#endif
