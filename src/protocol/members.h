/* SPDX-License-Identifier: Apache-2.0 */
/* members.h - the ranks of a job, and the sessions that hold or held them.
 *
 *     rank:  fresh --grant--> held --lose--> lost --grant--> held
 *                              |              |
 *                              '--complete--> done <--complete
 *
 * A rank has what its trainer has told: its lease, its barrier for the open
 * round, its position. The coordinator decides what happens; this is what it
 * decides by. No messages and no log lines: time and the number of the view are
 * parameters. Thread: one at a time. */
#ifndef FL_PROTOCOL_MEMBERS_H
#define FL_PROTOCOL_MEMBERS_H

#include "protocol/image.h"

typedef struct fl_members fl_members;

enum {
    FL_MEMBERS_WHO = 64,     /* bytes of host:pid that are kept */
    FL_MEMBERS_REASON = 256, /* bytes of a failure's sentence that are kept */
};

typedef enum fl_rank_state {
    FL_RANK_FRESH, /* it was never granted */
    FL_RANK_HELD,  /* a session has it */
    FL_RANK_LOST,  /* its session was lost; it can be granted again */
    FL_RANK_DONE,  /* its trainer has completed */
} fl_rank_state;

/* A rank. Only fl_members changes it. */
typedef struct fl_rank {
    int rank;
    fl_rank_state state;
    fl_id session;       /* the holder, or the last holder */
    int64_t g;           /* first view with the session */
    int64_t since;       /* when the session was granted the rank */
    bool explicit_id;    /* the holder claimed the rank as its explicit id */
    bool barrier;        /* the holder has sent BARRIER for the open round */
    int64_t step;        /* steps that have a position and count */
    char *position;      /* of the last of them, or NULL */
    char *next_position; /* barrier: of the step after `step`, or NULL */
    int64_t barrier_at;
    int64_t lease; /* when the holder's lease ends */
    bool call_broke;
    uint64_t open; /* the holder's open call; 0: none yet */
    uint64_t echo; /* number of the newest PROBE that the holder answered */
    char who[FL_MEMBERS_WHO]; /* host:pid of the holder, or of the last holder
                               */
    bool left;      /* a session has left this rank: the fields below are set */
    fl_leave leave; /* the last session that left; `ago` is not used */
    int64_t left_at;
    int64_t wait_until; /* the round waits for the lost rank until then; 0: it
                           was not lost in this round */
    int code;           /* exit code of the last session that was lost */
    char reason[FL_MEMBERS_REASON]; /* why the last session was lost */
} fl_rank;

/* job->trainers fresh ranks. `job` must outlive them. Own: new. */
fl_members *fl_members_new(const fl_job *job, int64_t now);
void fl_members_free(fl_members *m);

/* --- who is there --- */

/* Ranks are borrowed; an event changes them in place. */
const fl_rank *fl_members_get(const fl_members *m, int rank);
const fl_rank *fl_members_find(const fl_members *m,
                               fl_id session); /* NULL: it holds none */

int fl_members_count(const fl_members *m, fl_rank_state state);
bool fl_members_all_came(const fl_members *m); /* no rank is fresh */

/* Write the members, by rank, to `out`, which has room for every rank. Returns
 * how many there are. */
int fl_members_list(const fl_members *m, fl_member *out);

/* The same for the last session that left each rank. */
int fl_members_list_left(const fl_members *m, int64_t now, fl_leave *out);

/* Whether the session is over; *out then says how it left. */
bool fl_members_past(const fl_members *m, fl_id session, int64_t now,
                     fl_leave *out);
int64_t fl_members_count_past(const fl_members *m);

/* --- sessions come and go --- */

/* Grant a rank to a session, from view who.g on. `name`: host:pid. */
void fl_members_grant(fl_members *m, fl_member who, bool explicit_id,
                      const char *name, int64_t now);

/* The session of a held rank is lost. `view`: the first one without it. */
void fl_members_lose(fl_members *m, int rank, fl_left why, int64_t view,
                     int64_t now);

/* Why the session of a lost rank was lost, and the exit code of the job if it
 * ends for it. */
void fl_members_blame(fl_members *m, int rank, int code, const char *reason);

/* The trainer of a rank has completed. A held rank is left from `view` on; a
 * lost one was of a session that had completed before it was lost. */
void fl_members_complete(fl_members *m, int rank, int64_t view, int64_t now);

/* The lost rank whose last holder was this session; NULL: there is none, or the
 * rank was granted again. */
const fl_rank *fl_members_last_held(const fl_members *m, fl_id session);

/* A rank for a session that claims none; NULL: none is free. A lost rank that
 * was an explicit id is kept for its trainer until job->rejoin has passed. */
const fl_rank *fl_members_any_free(const fl_members *m, int64_t now);

/* Whether a rank may be granted now. After the first barrier of a round nobody
 * joins it, so that a process that keeps joining and dying cannot delay the
 * round for ever. */
bool fl_members_may_join(const fl_members *m);

/* --- leases --- */

/* The holder of a rank has renewed its lease on that call. `echo`: number of a
 * PROBE that it has answered. */
void fl_members_renew(fl_members *m, int rank, uint64_t call, uint64_t echo,
                      int64_t now);

/* A call broke: a member whose open call it was has job->broken left. */
void fl_members_hangup(fl_members *m, uint64_t call, int64_t now);

/* Extend all leases: this process itself was stopped for `gap`. */
void fl_members_forgive(fl_members *m, int64_t gap);

/* The first rank that is held and whose lease has run out; NULL: none. */
const fl_rank *fl_members_find_expired(const fl_members *m, int64_t now);

/* --- rounds --- */

/* The holder of a rank has sent BARRIER for the open round. In an asynchronous
 * job its step counts at once, else when the round is closed with this member.
 * False: it is a repeat. */
bool fl_members_barrier(fl_members *m, int rank, int64_t step,
                        const char *position, int64_t now);

/* Whether the open round waits for the trainer of a lost rank. */
bool fl_members_awaits(const fl_members *m, const fl_rank *r, int64_t now);

/* Whether all have come, there is a member, every member has sent its barrier,
 * and the round waits for no lost rank. */
bool fl_members_have_met(const fl_members *m, int64_t now);

/* Close the round: write the members that have sent their barrier, by rank, to
 * `out`, which has room for every rank, and count their steps. Returns how many
 * there are. */
int fl_members_close_round(fl_members *m, fl_member *out);

/* --- the end --- */

/* Whether a rank is held, or lost and kept for its trainer. */
bool fl_members_may_go_on(const fl_members *m, int64_t now);

/* The lost rank that was lost first; NULL: no rank is lost. */
const fl_rank *fl_members_first_lost(const fl_members *m);

/* How long the job waits for trainers that have never joined: job->start, or
 * only a short time after the last of the others was lost. */
int64_t fl_members_deadline(const fl_members *m);

/* --- waits --- */

/* Append a row for each trainer that the open round, or the start of the job,
 * waits for: fl_wait_row. */
void fl_members_waits(const fl_members *m, int64_t round, int64_t now,
                      fl_str *rows);

/* Whether a barrier waits for longer than job->stall, or the round waits for a
 * lost rank. */
bool fl_members_are_stalled(const fl_members *m, int64_t now);

/* --- what outlives the process --- */

/* Visit the ranks; the sessions that are over; what a snapshot has of the
 * ranks. */
void fl_members_visit(fl_members *m, fl_image *im);
void fl_members_visit_past(fl_members *m, fl_image *im);
void fl_members_visit_cut(fl_members *m, fl_image *im);

/* Whether ranks that were read can be together, in a job whose last view is
 * `view`. */
bool fl_members_are_sound(const fl_members *m, int64_t view);

/* Ranks were read: every lease begins anew, with some seconds more, and so does
 * the time to rejoin of every lost rank. */
void fl_members_restart(fl_members *m, int64_t now);

/* Ranks of a snapshot were read: nobody holds one. `anew`: those that were done
 * are fresh, too. */
void fl_members_rewind(fl_members *m, bool anew);

#endif
