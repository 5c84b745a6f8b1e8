/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - a trainer's connections to the servers of its job.
 *
 * A link runs the client of the protocol (client.h) over the network: it sends
 * the messages that the client puts into its outbox, feeds it with the answers,
 * and has a thread that renews the lease while the trainer computes.
 *
 * One lock guards the client and everything that the events below touch.
 * Callbacks of the network decode first and then take the lock. The network may
 * be called while the lock is held, never the other way round.
 *
 * Waits end when the caller's watch says so. A wait that takes long logs whom
 * it waits for:
 *
 *     trainer0:4711 waits for server 0 (ps0:6174): answer to PULL (round 7),
 *     12.0 s (limit 55.0 s)
 *     coordinator waits for trainer 1: to come, 12.1 s (limit 600.0 s) */
#ifndef FL_TRAINER_LINK_H
#define FL_TRAINER_LINK_H

#include "cluster/placement.h"
#include "exec/watch.h"
#include "net/rpc.h"
#include "protocol/client.h"

typedef struct fl_link fl_link;

/* Callbacks to the owner of a link. They run with the lock held. */
typedef struct fl_link_events {
    void *self;
    /* Values of a server have arrived. m is borrowed. */
    void (*values)(void *self, int server, const fl_msg *m);
    /* The session is lost; the client joins with a new one. */
    void (*fenced)(void *self);
} fl_link_events;

/* Own: new. place and job outlive it. It does not connect yet. */
fl_link *fl_link_new(const fl_placement *place, const fl_job *job,
                     const fl_link_events *events);
void fl_link_free(fl_link *l); /* without the lock; nothing is sent */

/* Connect, unless it is connected: wait until every server accepts connections,
 * then start the client. Thread: any, without the lock.
 * Err: EIO, EINTR, ETIMEOUT. */
fl_err fl_link_connect(fl_link *l, const fl_watch *by) FL_MUST_CHECK;

void fl_link_lock(fl_link *l);
void fl_link_unlock(fl_link *l); /* also logs what was noted under the lock */

/* --- with the lock held --- */

bool fl_link_is_connected(const fl_link *l);

/* Whether the link is connected and has a session that has not ended. */
bool fl_link_has_session(const fl_link *l);

/* --- with the lock held, on a link that is connected --- */

fl_client *fl_link_client(const fl_link *l);
void fl_link_flush(fl_link *l); /* send what is in the client's outbox */
void fl_link_wake(fl_link *l);  /* wake the waits whose goals are reached */
int64_t fl_link_now(void);      /* the time that the client is told, ns */

/* How many sessions were lost so far. */
int64_t fl_link_fences(const fl_link *l);

/* Wait until reached(of), or until the time `until` (ns; 0: no limit). The lock
 * is released during the wait; `reached` is called with the lock held. `by` may
 * end the wait (NULL: nobody). Err: EINTR, ETIMEOUT; EIO or
 * EENDED if the client is over.
 */
typedef bool (*fl_goal)(const void *of);
fl_err fl_link_wait(fl_link *l, fl_goal reached, const void *of,
                    const fl_watch *by, int64_t until) FL_MUST_CHECK;

/* Wait until the client is ready: joined, with all values of a version. */
fl_err fl_link_wait_ready(fl_link *l, const fl_watch *by) FL_MUST_CHECK;

/* Cancel all calls that carry pushes, and wait until the network has stopped
 * reading the memory that was lent to them. */
fl_err fl_link_end_pushes(fl_link *l, const fl_watch *by) FL_MUST_CHECK;

/* Leave the job and wait until the coordinator has acknowledged that, at most
 * `limit` ns (0: the job's limits). Err: EIO if the client has ended with an
 * error that no earlier call has returned. */
fl_err fl_link_leave(fl_link *l, const fl_watch *by, int code, const char *why,
                     int64_t limit) FL_MUST_CHECK;

/* Send a message of this session to the coordinator, outside the client, so
 * that it is never repeated. `done` runs without the lock. limit: ns. */
void fl_link_call_coordinator(fl_link *l, fl_msg_kind kind, fl_blob blob,
                              int64_t limit, fl_rpc_done done);

#endif
