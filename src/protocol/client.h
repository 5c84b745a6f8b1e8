/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - a trainer's side of the protocol: it joins, pushes, waits at the
 * barrier, and pulls.
 *
 *     idle --start--> joining --GRANT--> pulling --all VALUES--> ready
 *     ready --push.. step--> pushing --all ACKs--> meeting --ACK--> pulling
 *     (async: no meeting)    any --FENCED--> joining, with a new session
 *     any --leave--> leaving --ACK--> over       any --END--> over
 *
 * A pure machine like the coordinator. A request is sent again until it is
 * answered. FENCED makes it draw a new session and join again; the application
 * gets a warning, not an error, and goes on with its next batch. A server or
 * coordinator that has lost its state ends the trainer. Thread: one at a time.
 */
#ifndef FL_PROTOCOL_CLIENT_H
#define FL_PROTOCOL_CLIENT_H

#include "base/random.h"
#include "protocol/message.h"

typedef enum fl_client_state {
    FL_CLIENT_IDLE,
    FL_CLIENT_JOINING,
    FL_CLIENT_PULLING,
    FL_CLIENT_READY, /* waits for the application's next call */
    FL_CLIENT_PUSHING,
    FL_CLIENT_LEAVING,
    FL_CLIENT_OVER,
} fl_client_state;

typedef struct fl_client fl_client;

/* Callbacks into the application. None may call back into the client. */
typedef struct fl_app {
    void *self;
    fl_keeper keep;
    /* Values of a server have arrived; m is borrowed. */
    void (*values)(void *self, int server, const fl_msg *m);
    /* All values of version `round` have arrived: the next batch can run. */
    void (*ready)(void *self, int rank, int64_t round);
    /* The session is lost; what was in flight is dropped. */
    void (*fenced)(void *self, const char *why);
    /* The trainer has left: it has completed (code 0), the job has ended, or
     * it has failed. */
    void (*over)(void *self, int code, const char *why);
} fl_app;

/* `who` is host:pid. `id` is the trainer id that a user or launcher gave; with
 * FL_ANY_ID the coordinator chooses one. Own: new; job, app, entropy and out
 * must outlive it. */
fl_client *fl_client_new(const fl_job *job, const fl_app *app, int id,
                         const char *who, fl_entropy *entropy, fl_outbox *out);
void fl_client_free(fl_client *c);

/* Set what is pulled from a server at every step. By default nothing is. */
void fl_client_want(fl_client *c, int server, fl_blob names);

void fl_client_start(fl_client *c, int64_t now);

/* The examples of the coming step are used up at `position` (copied); NULL: the
 * step has no position. When its rank is granted again, the trainer gets the
 * position of the last step that counts. Only when ready, and when
 * fl_client_commit is acknowledged. Err: EINVAL. */
fl_err fl_client_position(fl_client *c, const char *position) FL_MUST_CHECK;

/* How many steps of this rank with a position count, and the position that the
 * last GRANT had; NULL: none. Borrowed until the next event. After a step
 * without a fence the number is one higher; if a session was lost in the step,
 * it shows whether the step counts all the same. */
int64_t fl_client_steps(const fl_client *c);
const char *fl_client_granted_position(const fl_client *c);

/* Push gradients of this round to a server. After the `last` push that server
 * gets no more until the next step; in an asynchronous job the next push begins
 * another series. Only when ready. Err: EINVAL. */
fl_err fl_client_push(fl_client *c, int server, fl_blob grads, bool last,
                      int64_t now) FL_MUST_CHECK;

/* Whether some push, or what fl_client_commit has sent, is not acknowledged
 * yet. */
bool fl_client_pushes(const fl_client *c);

/* All pushes of an asynchronous step that has a position are acknowledged: let
 * the step count, without a pull after it. Only when ready. Err: EINVAL. */
fl_err fl_client_commit(fl_client *c, int64_t now) FL_MUST_CHECK;

/* Ask for more values of the present version, such as rows of a table. The
 * callback `values` gets them. Only when ready. Err: EINVAL. */
fl_err fl_client_ask(fl_client *c, int server, fl_blob names,
                     int64_t now) FL_MUST_CHECK;

/* The pushes of this round are made: send the barrier, then pull the next
 * version. Only when ready. Err: EINVAL. */
fl_err fl_client_step(fl_client *c, int64_t now) FL_MUST_CHECK;

/* Leave the job. Code 0 means that the trainer has completed; with another code
 * it has failed, and `why` says why. */
void fl_client_leave(fl_client *c, int code, const char *why, int64_t now);

/* An answer from the coordinator or a server. */
void fl_client_recv(fl_client *c, fl_peer from, const fl_msg *m, int64_t now);

/* The call of request `tag` broke; tag 0 is the open call. The request is sent
 * again. */
void fl_client_broken(fl_client *c, uint64_t tag, int64_t now);

/* The host of a server or of the coordinator refuses connections. If the peer
 * has answered before and the refusals go on for job->gone, the trainer leaves
 * with an error. */
void fl_client_refused(fl_client *c, fl_peer by, int64_t now);

void fl_client_tick(fl_client *c, int64_t now); /* several times a second */

/* Append a row of fl_wait_row for each request that is not answered. */
void fl_client_waits(const fl_client *c, int64_t now, fl_str *rows);

fl_client_state fl_client_now(const fl_client *c);
fl_id fl_client_session(const fl_client *c);
int fl_client_rank(const fl_client *c); /* -1: none yet */
/* Of a client that is over: EENDED if others have ended the job, or a server is
 * lost; EDONE if this trainer has completed before; else EIO. */
fl_err fl_client_error(const fl_client *c);
int64_t fl_client_round(const fl_client *c);
uint64_t fl_client_tag(const fl_client *c); /* tag of the newest request */

#endif
