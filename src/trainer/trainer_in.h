/* trainer_in.h - the inside of a trainer.
 *
 *     trainer.c         what callers say: send, step, push, leave
 *     trainer_ask.c     what they ask: recv, lookup
 *     trainer_tally.c   what they count with others
 *     trainer_wait.c    their waits: who may end them, what they say
 *     trainer_link.c    the network and the ticker around the machine
 *
 * The machine (client.h), its outbox and all that its application hears are
 * touched under one lock. Callbacks of the network decode first, then take it,
 * feed the machine and send what it wants sent; the lock may be held while the
 * network is called, never the other way round. */
#ifndef FL_TRAINER_TRAINER_IN_H
#define FL_TRAINER_TRAINER_IN_H

#include "base/map.h"
#include "base/pool.h"
#include "net/rpc.h"
#include "protocol/client.h"
#include "trainer/trainer.h"
#include "wire/parcel.h"

#include <pthread.h>
#include <sys/types.h>

/* A name that is pulled with every step. */
typedef struct fl_wanted {
    const char *name;
    bool taken; /* handed out since the pull */
} fl_wanted;

/* What a trainer has to do with one server. */
typedef struct fl_connection {
    fl_trainer *trainer;
    const char *address;
    fl_rpc_peer *peer;
    fl_parcel *parcel;        /* gradients that are not pushed yet; or NULL */
    bool open;                /* the last push was not the step's last */
    FL_VEC(fl_wanted) wanted; /* in the order they were learned */
    fl_map place;             /* name -> its place in `wanted`, from 1 */
    size_t wanted_bytes;      /* of their values */
    bool learned;             /* since the machine was told what to pull */
    fl_parcel *pulled;        /* of the last step; as `wanted` was then */
} fl_connection;

/* What one caller asks servers, beside what comes with steps. */
typedef struct fl_ask {
    fl_parcel *question; /* or NULL */
    size_t bytes;        /* that its answer may have */
    uint64_t tag;        /* its number while it is not answered; or 0 */
    fl_parcel *answer;
} fl_ask;

typedef struct fl_talk {
    struct fl_talk *next; /* of those that go on */
    fl_ask *with;         /* each server */
} fl_talk;

/* The last sum of counts that the coordinator was asked for. */
typedef struct fl_tallying {
    bool under_way;
    fl_err err; /* what became of it, with: */
    char why[256];
    int64_t trainers;
    fl_parcel *sum; /* NULL: none came */
} fl_tallying;

/* A call of the network that has not ended. */
typedef struct fl_live {
    uint64_t id;   /* what the network calls back with */
    uint64_t call; /* what it calls it */
    fl_peer to;
    fl_msg_kind kind;
    uint64_t tag; /* the machine's number of the request */
} fl_live;

struct fl_trainer {
    fl_placement *place;
    fl_job job;
    fl_arena *arena;
    fl_map pieces; /* name on a server -> fl_piece of the placement */
    pid_t pid;     /* of the process that made it */
    fl_entropy entropy;
    fl_app app;
    fl_rpc *rpc; /* NULL: not connected yet */
    fl_pool *pool;
    fl_group ticker;
    pthread_mutex_t door; /* held by who connects; before the lock */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* something came */
    pthread_cond_t wake;  /* for the ticker: the end */
    bool ending;
    fl_client *client;
    fl_outbox out;
    fl_str notes; /* lines for the log, once the lock is free */
    fl_connection *line;
    fl_talk *talks;
    fl_tallying tallying;
    FL_VEC(fl_live) live;
    uint64_t ids;
    fl_live open; /* the open call; id 0: none */
    fl_id open_session;
    bool curious;      /* the coordinator was asked what it waits for */
    char trouble[128]; /* of the network since the last report; "": none */
    int64_t said;      /* when that was: threads that wait share it */
    int64_t fences;    /* sessions lost */
    bool stale;        /* what the caller computes on is not of this session */
    bool stepped;      /* once at least */
    bool sent;         /* since the last step */
    bool left;         /* leave was called */
    bool over;         /* the machine's word, with: */
    int code;
    char why[512];
};

/* --- trainer_link.c --- */

/* Until then nothing of the network exists. Err: EIO. */
fl_err fl_link_open(fl_trainer *t) FL_MUST_CHECK;
void fl_link_close(fl_trainer *t); /* not under the lock */

void fl_link_lock(fl_trainer *t);
void fl_link_unlock(fl_trainer *t); /* then writes what is to be logged */
void fl_link_flush(fl_trainer *t);  /* send what the machine wants sent */
int64_t fl_link_now(void);

/* Wait at most so long for something to come. */
void fl_link_rest(fl_trainer *t, int64_t ns);

/* Have it logged what the coordinator itself waits for. */
void fl_link_ask_why(fl_trainer *t);

/* Pushes whose memory the network still reads; and an end to them. */
bool fl_link_lends(const fl_trainer *t);
void fl_link_cancel_pushes(fl_trainer *t);

/* --- trainer.c --- */

/* Connected, not under the lock; then locked, joined and at a step. A failure
 * leaves it unlocked. `by`: who may end the wait. */
fl_err fl_trainer_enter(fl_trainer *t, const fl_watch *by) FL_MUST_CHECK;
fl_err fl_trainer_exit(fl_trainer *t, fl_err err) FL_MUST_CHECK; /* gives err */
size_t fl_trainer_most(const fl_trainer *t); /* bytes of values in a message */
bool fl_trainer_is_ready(const fl_trainer *t, const void *unused);
fl_err fl_trainer_check_server(const fl_trainer *t, const char *name,
                               int server) FL_MUST_CHECK;
/* Under the lock. Without barriers the first one who asks for values ends the
 * step. */
fl_err fl_trainer_step_if_sent(fl_trainer *t, const fl_watch *by) FL_MUST_CHECK;

/* --- trainer_ask.c --- */

/* The machine has an answer; or a session was lost, and all questions. Under
 * the lock. */
void fl_talks_hear(fl_trainer *t, int server, uint64_t tag, fl_parcel *answer);
void fl_talks_lose(fl_trainer *t);

/* --- trainer_wait.c; all under the lock, which they may leave --- */

/* Something that is waited for, who may end it (or NULL), and until when (ns;
 * 0: no limit here). */
typedef bool (*fl_goal)(const fl_trainer *t, const void *of);
fl_err fl_trainer_wait(fl_trainer *t, fl_goal reached, const void *of,
                       const fl_watch *by, int64_t until) FL_MUST_CHECK;

/* Every server takes connections; not under the lock. */
fl_err fl_trainer_connect(const fl_trainer *t,
                          const fl_watch *by) FL_MUST_CHECK;

/* The first rows of a table of waits in one line; of those that start so. */
void fl_waits_join(const char *rows, const char *start, fl_str *line);

/* The sentence of a trainer that is over. */
fl_err fl_trainer_failed(const fl_trainer *t);

#endif
