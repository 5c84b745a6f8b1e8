/* coord_in.h - the inside of the coordinator, shared by its files.
 *
 *     rank:  fresh --grant--> held --lost, was taken--> lost --grant--> held
 *              ^---lost, never taken--' '--COMPLETE--> done
 *
 * Whatever changes calls fl_coord_settle, which serves parked JOINs, decides
 * the round and ends the job as far as the change allows. */
#ifndef FL_PROTOCOL_COORD_IN_H
#define FL_PROTOCOL_COORD_IN_H

#include "protocol/coord.h"

enum {
    FL_WHO_MAX = 64,     /* bytes of host:pid that are kept */
    FL_REASON_MAX = 256, /* of the sentence of a failure */
    FL_DECIDED_MAX = 16, /* decisions that some server has not closed yet */
};

typedef enum fl_rank_state {
    FL_RANK_FRESH, /* never taken */
    FL_RANK_HELD,
    FL_RANK_LOST,
    FL_RANK_DONE,
} fl_rank_state;

typedef struct fl_rank {
    fl_rank_state state;
    fl_id session;    /* its holder, or the last one */
    int64_t g, since; /* since: granted at */
    bool explicit_id; /* a user or launcher gave it: the rank is kept for it */
    bool taken;       /* at some time, by some session */
    bool barrier;     /* of the open round is here */
    int64_t barrier_at;
    int64_t lease; /* ends at */
    bool call_broke;
    uint64_t open; /* its open call; 0: not yet */
    uint64_t echo; /* newest number of ours that the holder has said */
    int64_t probed;
    char who[FL_WHO_MAX];
    /* of the last session that left */
    bool left;
    fl_leave leave; /* ago: not used, see left_at */
    int64_t left_at;
    int code;
    char reason[FL_REASON_MAX];
} fl_rank;

typedef struct fl_past { /* a session that is over; sorted by age */
    fl_leave leave;
    int64_t at;
} fl_past;

typedef struct fl_waiting { /* a parked JOIN */
    fl_id session;
    int claim; /* or FL_ANY_ID */
    bool explicit_id;
    uint64_t call, tag;
    int64_t since;
    uint64_t asked; /* the holder lives once it has said this number; 0: n/a */
    char who[FL_WHO_MAX];
} fl_waiting;

typedef struct fl_decision {
    int64_t round;
    fl_member *member; /* P(round), by rank */
    int n;
} fl_decision;

typedef struct fl_follower { /* a server as the coordinator sees it */
    int64_t view, version;   /* acknowledged */
    fl_state state;          /* the first it was heard with; id 0: never */
    bool over;
    int64_t sent, heard;
    fl_refusals refused;
} fl_follower;

struct fl_coord {
    const fl_job *job;
    fl_outbox *out;
    int64_t born, ticked, stalled; /* when; stalled: last report */
    fl_rank *rank;                 /* job->trainers */
    fl_follower *server;           /* job->servers */
    int64_t view, round;
    uint64_t echo;
    FL_VEC(fl_past) past;
    FL_VEC(fl_waiting) waiting; /* in order of arrival */
    FL_VEC(fl_decision) decided;
    bool ended;
    int code;
    char reason[FL_REASON_MAX + 64];
    int64_t version, ended_at; /* END's */
};

static inline fl_peer fl_to_call(uint64_t call)
{
    return (fl_peer){FL_PEER_CALL, 0, call};
}

/* An answer to m on the call it came on. */
fl_msg fl_coord_answer(const fl_coord *c, fl_msg_kind kind, const fl_msg *m);

/* Something changed: do what is now possible. */
void fl_coord_settle(fl_coord *c, int64_t now);

/* --- coord_join.c: sessions and ranks --- */

void fl_coord_join(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);
void fl_coord_serve(fl_coord *c, int64_t now); /* parked JOINs */
void fl_coord_probe(fl_coord *c, int64_t now); /* do holders live? */
void fl_coord_lose(fl_coord *c, fl_rank *r, fl_left why, int code,
                   const char *reason, int64_t now);
void fl_coord_complete(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);
void fl_coord_failed(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);
void fl_coord_fence(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now);
void fl_coord_say_end(fl_coord *c, fl_peer to, uint64_t tag);
fl_rank *fl_coord_find(const fl_coord *c, fl_id session); /* held */
bool fl_coord_all_came(const fl_coord *c);
int fl_coord_count(const fl_coord *c, fl_rank_state state);

/* --- coord_tell.c: views and decisions to servers, reports --- */

void fl_coord_new_view(fl_coord *c, int64_t now);
void fl_coord_tell(fl_coord *c, int server, int64_t now);
void fl_coord_tell_all(fl_coord *c, int64_t now);
void fl_coord_state(fl_coord *c, int server, const fl_msg *m, int64_t now);
void fl_coord_report(fl_coord *c, int64_t now); /* stalls, aloud */

#endif
