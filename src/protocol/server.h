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
    /* Would this push do? Names, shapes, finite values, elements that have not
     * come before. n is 1; FL_OK: it is accepted. */
    fl_err (*check)(void *self, const fl_staged *by);
    /* Begin to apply the mean of n participants, in the order given. The
     * bytes of the blobs stay until fl_server_applied, the arrays do not.
     * Async: n is 1. */
    void (*apply)(void *self, int64_t round, const fl_staged *by, int n);
    /* Answer a pull: send `reply` with the values that `names` asks for, as
     * they are now, before whatever is applied later. `names` is borrowed. */
    void (*read)(void *self, fl_blob names, fl_peer to, const fl_msg *reply);
} fl_store;

/* Own: new; job, store and out outlive it. */
fl_server *fl_server_new(const fl_job *job, int index, fl_state state,
                         const fl_store *store, fl_outbox *out, int64_t now);
void fl_server_free(fl_server *s);

void fl_server_recv(fl_server *s, fl_peer from, const fl_msg *m, int64_t now);

/* Is m of this job and of a session that is a member, or may become one? All
 * else is refused without a look at its blob. */
bool fl_server_expects(const fl_server *s, const fl_msg *m);

/* The store has applied what it was given first; why: NULL, or what went wrong,
 * which ends the job. */
void fl_server_applied(fl_server *s, const char *why, int64_t now);

/* A call broke: a request parked on it is forgotten. */
void fl_server_hangup(fl_server *s, uint64_t call);

/* The coordinator's host says that nobody listens there. For a while after the
 * first contact that is the end. */
void fl_server_refused(fl_server *s, int64_t now);

void fl_server_tick(fl_server *s, int64_t now); /* several times a second */

/* END was obeyed and its time to linger is over; *code is the exit code. */
bool fl_server_over(const fl_server *s, int64_t now, int *code);

/* Ask the coordinator to end the job, for instance because of a signal. `why`
 * names this server. */
void fl_server_quit(fl_server *s, const char *why, int64_t now);

/* The verdict once END is known; *why is borrowed. */
bool fl_server_end(const fl_server *s, int *code, const char **why);

void fl_server_waits(const fl_server *s, int64_t now, fl_str *rows);

/* Rounds closed; async: pushes applied. */
int64_t fl_server_version(const fl_server *s);
int64_t fl_server_view(const fl_server *s);
bool fl_server_ended(const fl_server *s);
int fl_server_parked(const fl_server *s);
size_t fl_server_bytes(const fl_server *s); /* staged and parked */
int fl_server_seats(const fl_server *s);    /* sessions with a window */

#endif
