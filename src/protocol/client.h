/* client.h - a trainer's side: joins, pushes, meets the others, pulls.
 *
 *     idle --start--> joining --GRANT--> pulling --all VALUES--> ready
 *     ready --push.. step--> pushing --all ACKs--> meeting --ACK--> pulling
 *     (async: no meeting)    any --FENCED--> joining, with a new session
 *     any --leave--> leaving --ACK--> over       any --END--> over
 *
 * A pure machine like the coordinator. A request is sent again until it is
 * answered; FENCED from anyone means a new session, and the application sees a
 * warning, not an error: it goes on with its next batch. A server or
 * coordinator that has lost its state ends it. Thread: one at a time. */
#ifndef FL_PROTOCOL_CLIENT_H
#define FL_PROTOCOL_CLIENT_H

#include "base/random.h"
#include "protocol/message.h"

typedef enum fl_client_state {
    FL_CLIENT_IDLE,
    FL_CLIENT_JOINING,
    FL_CLIENT_PULLING,
    FL_CLIENT_READY, /* the application's turn */
    FL_CLIENT_PUSHING,
    FL_CLIENT_MEETING,
    FL_CLIENT_LEAVING,
    FL_CLIENT_OVER,
} fl_client_state;

typedef struct fl_client fl_client;

/* What the application hears. No function may call back into the client. */
typedef struct fl_app {
    void *self;
    fl_keeper keep;
    /* Values of a server came; m is borrowed. */
    void (*values)(void *self, int server, const fl_msg *m);
    /* All values of version `round` are here: next batch. */
    void (*ready)(void *self, int rank, int64_t round);
    /* The session is lost; what was in flight is dropped. */
    void (*fenced)(void *self, const char *why);
    /* No more: left (code 0), or the job's end, or an error of its own. */
    void (*over)(void *self, int code, const char *why);
} fl_app;

/* `who` is host:pid; `id` the trainer id that a user or launcher gave, or
 * FL_ANY_ID: the coordinator gives one. Own: new; job, app, entropy and out
 * outlive it. */
fl_client *fl_client_new(const fl_job *job, const fl_app *app, int id,
                         const char *who, fl_entropy *entropy, fl_outbox *out);
void fl_client_free(fl_client *c);

/* What to pull from a server at every step; nothing if never called. */
void fl_client_want(fl_client *c, int server, fl_blob names);

void fl_client_start(fl_client *c, int64_t now);

/* Gradients of this round for a server. After the `last` push no more is
 * allowed to that server until the next step; in an asynchronous job the next
 * push begins another series. Only when ready. Err: EINVAL. */
fl_err fl_client_push(fl_client *c, int server, fl_blob grads, bool last,
                      int64_t now) FL_MUST_CHECK;

/* Pushes that are not acknowledged. */
bool fl_client_pushes(const fl_client *c);

/* More values of the version at hand (rows of a table). Only when ready;
 * `values` brings them. Err: EINVAL. */
fl_err fl_client_ask(fl_client *c, int server, fl_blob names,
                     int64_t now) FL_MUST_CHECK;

/* The round's pushes are made: meet the others, then pull. Only when ready.
 * Err: EINVAL. */
fl_err fl_client_step(fl_client *c, int64_t now) FL_MUST_CHECK;

/* Leave for good: code 0 completes, another fails with that sentence. */
void fl_client_leave(fl_client *c, int code, const char *why, int64_t now);

/* An answer from the coordinator or a server. */
void fl_client_recv(fl_client *c, fl_peer from, const fl_msg *m, int64_t now);

/* The call of request `tag` broke; 0: the open call. It is made again. */
void fl_client_broken(fl_client *c, uint64_t tag, int64_t now);

/* The host of a server, or of the coordinator, says that nobody listens there.
 * For a while after the first contact that is the end. */
void fl_client_refused(fl_client *c, fl_peer by, int64_t now);

void fl_client_tick(fl_client *c, int64_t now); /* several times a second */

void fl_client_waits(const fl_client *c, int64_t now, fl_str *rows);

fl_client_state fl_client_now(const fl_client *c);
fl_id fl_client_session(const fl_client *c);
int fl_client_rank(const fl_client *c); /* -1: none yet */
int64_t fl_client_round(const fl_client *c);
uint64_t fl_client_tag(const fl_client *c); /* of the last request made */

#endif
