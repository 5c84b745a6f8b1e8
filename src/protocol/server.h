/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - a server: stages gradients, closes rounds, answers pulls.
 *
 * A pure machine like the coordinator. It never looks into gradients and
 * parameters: a store, given by the driver, holds them.
 * Thread: one at a time. */
#ifndef FL_PROTOCOL_SERVER_H
#define FL_PROTOCOL_SERVER_H

#include "protocol/message.h"

typedef struct fl_server fl_server;

/* One participant's gradients of a round: its pushes by seq. */
typedef struct fl_staged {
    int rank;
    fl_id session;
    int n;
    const fl_blob *part;
    bool last; /* async: the last push of a trainer's step */
} fl_staged;

/* What holds the parameters. No function may call back into the server. */
typedef struct fl_store {
    void *self;
    fl_keeper keep;
    /* Check a push before it is accepted: names, shapes, finite values, no
     * element twice. `by` has one part. */
    fl_err (*check)(void *self, const fl_staged *by);
    /* Begin to apply the mean of n participants, in the order given; async: n
     * is 1. The store reports with fl_server_applied. The bytes of the blobs
     * stay until then, the arrays only during this call. */
    void (*apply)(void *self, int64_t round, const fl_staged *by, int n);
    /* Answer a pull: send `reply` with the present values of what `names`
     * asks for. Nothing that is applied later may be in them. `names` is
     * borrowed. */
    void (*read)(void *self, fl_blob names, fl_peer to, const fl_msg *reply);
} fl_store;

/* Own: new; job, store and out must outlive it. */
fl_server *fl_server_new(const fl_job *job, int index, fl_state state,
                         const fl_store *store, fl_outbox *out, int64_t now);
void fl_server_free(fl_server *s);

void fl_server_recv(fl_server *s, fl_peer from, const fl_msg *m, int64_t now);

/* Is m of this job, and its session a member or perhaps a member of a newer
 * view? Other messages are refused whatever their blob holds. */
bool fl_server_expects(const fl_server *s, const fl_msg *m);

/* The store has applied the oldest task that it was given. `why` is NULL, or
 * says what went wrong; then the job ends. */
void fl_server_applied(fl_server *s, const char *why, int64_t now);

/* A call broke: a request parked on it is forgotten. */
void fl_server_hangup(fl_server *s, uint64_t call);

/* The coordinator's host refuses connections. If the coordinator was heard
 * before and the refusals go on for `gone` of the job, the server ends. */
void fl_server_refused(fl_server *s, int64_t now);

void fl_server_tick(fl_server *s, int64_t now); /* several times a second */

/* True once END was obeyed and the time to linger is over. *code is then the
 * exit code. */
bool fl_server_over(const fl_server *s, int64_t now, int *code);

/* Ask the coordinator to end the job, for instance because of a signal. `why`
 * names this server. */
void fl_server_quit(fl_server *s, const char *why, int64_t now);

/* True once END is known; *code and *why (borrowed) are then END's. */
bool fl_server_end(const fl_server *s, int *code, const char **why);

void fl_server_waits(const fl_server *s, int64_t now, fl_str *rows);

/* Rounds closed; async: pushes applied. */
int64_t fl_server_version(const fl_server *s);
int64_t fl_server_view(const fl_server *s);
bool fl_server_ended(const fl_server *s);
int fl_server_parked(const fl_server *s);
size_t fl_server_bytes(const fl_server *s); /* staged, parked, in flight */
int fl_server_seats(const fl_server *s);    /* sessions with a window */

#endif
