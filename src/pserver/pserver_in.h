/* pserver_in.h - the inside of a server process, shared by its files.
 *
 *     pserver_hear.c  what comes in becomes events of the machines
 *     pserver_tell.c  what the machines leave in their outboxes goes out
 *     pserver.c       beginning, ticks, signals, end */
#ifndef FL_PSERVER_PSERVER_IN_H
#define FL_PSERVER_PSERVER_IN_H

#include "base/clock.h"
#include "base/signals.h"
#include "net/rpc.h"
#include "protocol/coord.h"
#include "pserver/pserver.h"
#include "pserver/store.h"
#include "pserver/tally.h"
#include "wire/codec.h"

#include <pthread.h>

/* One-way messages between servers: one of a kind is under way to each, and
 * the newest of those that came meanwhile waits.
 *
 * Who says such a word must prove that it is that server. Each process has a
 * number of its own, drawn at random, which it sends to the endpoints of the
 * others and to nobody else; every word repeats the number of who it goes to.
 * A server that hears a word without its number does not obey it, but sends its
 * own to the coordinator's endpoint: a knock. So only who can listen at the
 * endpoints or to the network between them can speak as one of the servers. */
typedef struct fl_channel {
    bool busy;
    fl_packet *next; /* NULL: none waits */
} fl_channel;

typedef struct fl_pserver {
    const fl_pserver_opts *opts;
    const fl_placement *place;
    const fl_clock *clock;
    fl_job job;
    fl_rpc *rpc;
    fl_rpc_method method[FL_MSG_KINDS + 2]; /* Why, and the end */
    fl_rpc_peer **peer;                     /* of each server */
    fl_pstore *store;
    fl_store face;
    fl_signals *signals;
    char address[128]; /* that it listens on */
    int port;          /* of it; 0: it does not listen yet */
    uint64_t secret;   /* drawn at the start; only other servers are told */
    fl_state state;

    pthread_mutex_t lock; /* never held while foreign code runs */
    bool closed;          /* no event reaches the machines any more */
    fl_coord *coord;      /* of server 0, with: */
    fl_tallies *tallies;
    fl_server *server;
    fl_outbox coord_out, server_out;
    FL_VEC(uint64_t) open;               /* calls */
    fl_channel (*channel)[FL_MSG_KINDS]; /* to each server, by kind */
    fl_refusals strange;  /* a server of another job answers, since */
    uint64_t *known;      /* secret of each server; 0: not proven yet */
    fl_id *told;          /* session of each rank, as the log has it */
    int64_t told_version; /* that the log has, and when */
    int64_t told_at;
    FL_VEC(char *) notes; /* for the log, once the lock is free */
} fl_pserver;

static inline int64_t fl_pserver_now(const fl_pserver *p)
{
    return fl_clock_now(p->clock);
}

void fl_pserver_lock(fl_pserver *p);
void fl_pserver_unlock(fl_pserver *p); /* writes the notes */

/* Under the lock: a line for the log. */
void fl_pserver_note(fl_pserver *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Under the lock: who waits for whom; without names for strangers, who learn
 * how many waits there are. */
void fl_pserver_waits(fl_pserver *p, bool names, fl_str *text);

/* --- pserver_hear.c --- */

void fl_pserver_methods(fl_pserver *p); /* fills p->method */
void fl_pserver_hangup(void *self, uint64_t call);
void fl_pserver_applied(void *self, const char *why);

/* --- pserver_tell.c --- */

/* After every event, under the lock: empty the outboxes. */
void fl_pserver_flush(fl_pserver *p);

/* Under the lock: tell the coordinator's endpoint that we are here; `number`
 * is what somebody said is its own. */
void fl_pserver_knock(fl_pserver *p, uint64_t number);

/* An answer of the store's, without the lock. */
void fl_pserver_answer(void *self, fl_peer to, const fl_msg *m);

void fl_pserver_drop_channels(fl_pserver *p);

#endif
