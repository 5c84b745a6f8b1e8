/* SPDX-License-Identifier: Apache-2.0 */
/* pushers.h - sessions that push to a server, and what they have staged.
 *
 * A pusher is a session that has pushed. It has a window of the pushes that
 * were seen, in all rounds, and the pushes that are staged for the open round
 * of a synchronous job. It outlives its membership as long as a decision may
 * name it. Thread: one at a time. */
#ifndef FL_PROTOCOL_PUSHERS_H
#define FL_PROTOCOL_PUSHERS_H

#include "protocol/image.h"
#include "protocol/server.h"

typedef struct fl_pushers fl_pushers;
typedef struct fl_pusher fl_pusher; /* valid until one is added or forgotten */

/* `job` and `store` must outlive it; the store keeps the blobs. Own: new. */
fl_pushers *fl_pushers_new(const fl_job *job, const fl_store *store);
void fl_pushers_free(fl_pushers *ps);

int fl_pushers_count(const fl_pushers *ps);
size_t fl_pushers_bytes(const fl_pushers *ps); /* of staged pushes */

fl_pusher *fl_pushers_find(const fl_pushers *ps, fl_id session); /* or NULL */

/* The pusher of a session. It is made if there is none. */
fl_pusher *fl_pushers_add(fl_pushers *ps, fl_id session, int rank);

/* --- a push comes --- */

bool fl_pusher_has_seen(const fl_pusher *p, int64_t seq);

/* Whether the window and the round of the pusher have room for a push. Err:
 * EPROTO. */
fl_err fl_pushers_check(const fl_pushers *ps, const fl_pusher *p,
                        int64_t seq) FL_MUST_CHECK;

/* Mark a push, which was checked, as seen. */
void fl_pusher_mark(fl_pusher *p, int64_t seq);

/* Stage a push for the open round. Own: the blob is kept. */
void fl_pushers_stage(fl_pushers *ps, fl_pusher *p, const fl_msg *m);

/* Mark and stage a push that the store has kept over a restart. False: it is
 * outside the window, and `kept` stays the caller's. */
bool fl_pushers_restage(fl_pushers *ps, fl_pusher *p, const fl_push_id *id,
                        fl_blob kept);

/* The store knows which pushes of a session were seen before a restart. */
void fl_pushers_rewindow(fl_pushers *ps, fl_id session, int rank, fl_window w);

/* --- a round closes --- */

/* Whether all pushes of a session for the open round are staged. */
bool fl_pushers_have_all(const fl_pushers *ps, fl_id session);

/* Write what the n members of a decision have staged, by rank, to `by`, which
 * has room for all. The parts are borrowed. Returns how many there are. */
int fl_pushers_gather(const fl_pushers *ps, const fl_member *member, int n,
                      fl_staged *by);

/* The round is closed: drop what was staged, and forget who is gone. */
void fl_pushers_close_round(fl_pushers *ps);

/* --- a session leaves --- */

/* Only the n members are left. `undecided`: the open round has no decision, so
 * that none can name the others: they are forgotten at once. Else they are when
 * the round is closed. */
void fl_pushers_retain(fl_pushers *ps, const fl_member *member, int64_t n,
                       bool undecided);

/* Let the store forget the sessions that were forgotten since, but for those
 * that are in use: they are forgotten by a later call. */
void fl_pushers_flush(fl_pushers *ps,
                      bool (*uses)(const void *self, fl_id session),
                      const void *self);

/* Visit sessions and windows: what outlives the process. The store has what is
 * staged. */
void fl_pushers_visit(fl_pushers *ps, fl_image *im);

#endif
