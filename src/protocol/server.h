/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - a server: stages gradients, closes rounds, answers pulls.
 *
 * A pure state machine like the coordinator. It never looks into gradients and
 * parameters: an fl_store, which the caller provides, holds and updates them.
 * Thread: one at a time. */
#ifndef FL_PROTOCOL_SERVER_H
#define FL_PROTOCOL_SERVER_H

#include "protocol/message.h"
#include "protocol/window.h"

typedef struct fl_server fl_server;

/* Names a push. */
typedef struct fl_push_id {
    fl_id session;
    int rank;
    int64_t seq;
    int64_t round;
    int64_t
        count; /* of the last push of a round: how many there were; else 0 */
} fl_push_id;

/* The gradients of one session for a round: its pushes, sorted by seq. */
typedef struct fl_staged {
    int rank;
    fl_id session;
    int n; /* pushes */
    const fl_blob *part;
    bool last;     /* async: the last push of a trainer's step */
    int64_t seq;   /* async: the number of the push */
    int64_t step;  /* async: as in PUSH; 0: its step has no position */
    int64_t first; /* async: the number of the step's first push */
} fl_staged;

/* A snapshot that is to be taken. */
typedef struct fl_moment {
    int64_t number;
    int64_t version;   /* of the values: fl_server_version */
    const void *image; /* for fl_server_rewind */
    size_t n;
} fl_moment;

/* Callbacks to the parameters. None may call back into the server. */
typedef struct fl_store {
    void *self;
    fl_keeper keep;
    /* Check a push before it is accepted: names, shapes, finite values, no
     * element twice. `by` has one part. */
    fl_err (*check)(void *self, const fl_staged *by);
    /* Begin to apply the mean of the gradients of n sessions, added in the
     * order given; async: n is 1. The store calls fl_server_applied when it is
     * done. The bytes of the blobs are kept until then, the arrays only during
     * this call. */
    void (*apply)(void *self, int64_t round, const fl_staged *by, int n);
    /* Answer a pull: send `reply` with the present values of the variables
     * in `names`. A later apply must not change these values. `names` is
     * borrowed. */
    void (*read)(void *self, fl_blob names, fl_peer to, const fl_msg *reply);

    /* For a store that outlives its process; each may be NULL. */

    /* Keep a staged push until its round is closed; it is acknowledged next.
     * The result ends with keep.drop. NULL: keep.keep is called. */
    fl_blob (*stage)(void *self, const fl_push_id *id, fl_blob b);
    /* An image with this version is saved: what was staged for older rounds is
     * not needed any more, also not after a restart. */
    void (*closed)(void *self, int64_t version);
    /* An image is saved in which the session is no member any more and none of
     * its pushes is needed; those that were given to `apply` are applied. */
    void (*forget)(void *self, fl_id session);

    /* Begin a snapshot of the values as they are when all that was given to
     * `apply` is applied. `image` is borrowed. NULL: none are taken. */
    void (*cut)(void *self, const fl_moment *cut);
} fl_store;

/* Own: new; job, store and out must outlive it. */
fl_server *fl_server_new(const fl_job *job, int index, fl_state state,
                         const fl_store *store, fl_outbox *out, int64_t now);
void fl_server_free(fl_server *s);

/* --- what outlives the process ---
 *
 * After each event the driver saves an image if something has changed, then
 * calls fl_server_flush, then sends what is in the outbox. So nobody hears of
 * anything that a restart could forget. */

/* Has anything changed that is in the image, since the last image was made? */
bool fl_server_changed(const fl_server *s);

/* Append the image. Staged pushes are not in it: the store has them. Neither
 * are calls, parked requests, pushes in flight and times. */
void fl_server_image(fl_server *s, fl_str *to);

/* Begin the store's work that had to wait for the image: apply a round, read
 * values. Call it after every event, also if no images are saved. */
void fl_server_flush(fl_server *s);

/* Go on from an image, right after fl_server_new. Err: EPROTO: the image cannot
 * be used; then nothing but fl_server_free may be called. */
fl_err fl_server_restore(fl_server *s, const void *image, size_t n,
                         int64_t now) FL_MUST_CHECK;

/* After fl_server_restore, for each push that the store has kept, in order.
 * `kept` is what `stage` returned then, or the like. False: the push is not
 * needed, and `kept` stays the caller's. */
bool fl_server_restage(fl_server *s, const fl_push_id *id, fl_blob kept);

/* Async: after fl_server_restore, for each session whose pushes were applied,
 * the numbers of those that were applied wholly, the last step of them that has
 * a position (0: none), and the number of the step's first push. */
void fl_server_rewindow(fl_server *s, fl_id session, int rank, fl_window w,
                        int64_t step, int64_t first);

/* Async: after fl_server_restore, for each push that was applied in part, in
 * the order in which the store must get them again. Other pushes wait until
 * it came again and was applied, or a view has dropped its session. If that was
 * before the restart, the store is told to forget the session. */
void fl_server_interrupted(fl_server *s, fl_id session, int rank, int64_t seq);

/* Async: after fl_server_restore, for each push that some owners had applied
 * and others had not begun, once or more often. No snapshot begins until it
 * came again and was applied, or a view has dropped its session. */
void fl_server_half_applied(fl_server *s, fl_id session, int64_t seq);

/* Begin with values of a snapshot, right after fl_server_new. `coordinator`:
 * state id of the one that sent REWIND; 0: nobody did. `image` is that of its
 * fl_moment; n is 0: the snapshot is of another number of servers. Err: EPROTO:
 * the image cannot be used. */
fl_err fl_server_rewind(fl_server *s, int64_t version, uint64_t coordinator,
                        const void *image, size_t n) FL_MUST_CHECK;

/* --- events --- */

void fl_server_recv(fl_server *s, fl_peer from, const fl_msg *m, int64_t now);

/* Whether m belongs to this job and comes from a member, or from a session that
 * may be a member in a view that this server does not have yet. If not, m will
 * be refused, and its blob need not be decoded. */
bool fl_server_expects(const fl_server *s, const fl_msg *m);

/* The store has finished the oldest fl_store.apply. `why` is NULL, or says what
 * went wrong; then the job ends. */
void fl_server_applied(fl_server *s, const char *why, int64_t now);

/* The snapshot of that number is written. */
void fl_server_written(fl_server *s, int64_t number, int64_t now);

/* The snapshot that the coordinator wants this server to go back to, and the
 * generation that begins with it; 0: none. The driver then makes the server
 * anew. */
int64_t fl_server_rewinds(const fl_server *s, int64_t *generation);

/* That snapshot cannot be restored: the server goes on as it is, and tells the
 * coordinator. */
void fl_server_cannot_rewind(fl_server *s, const char *why, int64_t now);

/* A call broke: a request parked on it is forgotten. */
void fl_server_hangup(fl_server *s, uint64_t call);

/* The coordinator's host refuses connections. If the coordinator has
 * been heard before and the refusals go on for job->gone, the server ends. */
void fl_server_refused(fl_server *s, int64_t now);

void fl_server_tick(fl_server *s, int64_t now); /* several times a second */

/* True once the server has ended, the coordinator knows that, and job->linger
 * has passed. If the job has failed the coordinator need not know; nor if it is
 * silent for job->reach. *code is then the exit code. */
bool fl_server_over(const fl_server *s, int64_t now, int *code);

/* The coordinator knows that this server has ended. */
bool fl_server_confirmed(const fl_server *s);

/* After fl_server_restore: the earlier process was about to leave. So nobody
 * looks for this server, and it need not stay for the coordinator. False: the
 * server has not ended. */
bool fl_server_leaves(fl_server *s);

/* Ask the coordinator to end the job, for instance because of a signal. `why`
 * is the reason and names this server. */
void fl_server_quit(fl_server *s, const char *why, int64_t now);

/* True once END has arrived; *code and *why (borrowed) are then END's. */
bool fl_server_end(const fl_server *s, int *code, const char **why);

/* Whether the job has ended because it has no trainers any more: each is
 * complete, or was lost and can no longer rejoin. */
bool fl_server_lacks_trainers(const fl_server *s);

/* Append a row of fl_wait_row for each request that is parked. */
void fl_server_waits(const fl_server *s, int64_t now, fl_str *rows);

/* Rounds closed; async: pushes applied, without those between the last image
 * and a restart. */
int64_t fl_server_version(const fl_server *s);
int64_t fl_server_view(const fl_server *s);
/* State id of the coordinator; 0: it was not heard yet. fl_server_rewinds: of
 * the one that sent REWIND. */
uint64_t fl_server_coordinator(const fl_server *s);
bool fl_server_ended(const fl_server *s);
int fl_server_parked(const fl_server *s);
size_t fl_server_bytes(const fl_server *s); /* staged, parked, in flight */
int fl_server_members(const fl_server *s);  /* trainers of its view */
int fl_server_seats(const fl_server *s);    /* sessions with a window */

#endif
