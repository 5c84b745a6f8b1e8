/* SPDX-License-Identifier: Apache-2.0 */
/* sim_world.h - the types of the simulator: parties, calls, events, and what
 * the checks remember.
 *
 * Parties are numbered: servers 0 .. S-1, then the coordinator, then trainer
 * processes. The coordinator shares the host of server 0. */
#ifndef FL_PROTOCOL_SIM_WORLD_H
#define FL_PROTOCOL_SIM_WORLD_H

#include "base/random.h"
#include "protocol/client.h"
#include "protocol/coord.h"
#include "protocol/server.h"
#include "protocol/sim.h"

enum {
    SIM_HISTORY = 60,  /* events that a report shows */
    SIM_STATES = 1000, /* states of a server in a generation at most */
};

/* What an event is. */
typedef enum sim_kind {
    SIM_MSG,     /* a message arrives */
    SIM_TICK,    /* a machine's timer fires */
    SIM_WORK,    /* a trainer's batch is computed */
    SIM_APPLIED, /* a store has applied its oldest task */
    SIM_HANGUP,  /* a call broke, as the called process sees it */
    SIM_BROKEN,  /* a call broke, as the caller sees it */
    SIM_START,   /* a trainer process starts */
    SIM_REPLACE, /* one server or all are killed and started without state */
    SIM_CRASH,   /* one server or all are killed and started with state */
    SIM_FAULT,   /* the next fault happens */
} sim_kind;

typedef struct sim_event {
    int64_t at;
    uint64_t order; /* events of the same time happen in this order */
    sim_kind kind;
    int party;
    int life;          /* which start of the process the event is for */
    bool any_life;     /* for any start of the process with the same state */
    int losses;        /* of the state of that process until then */
    int sender_losses; /* of the state of the sender */
    fl_peer from;
    bool refused;    /* SIM_BROKEN: no process listens at `from` */
    fl_msg *msg;     /* owned */
    uint64_t number; /* SIM_HANGUP: the call; SIM_BROKEN: the tag */
} sim_event;

/* One event in the history that a report shows. */
typedef struct sim_line {
    int64_t at;
    sim_kind kind;
    int party, from;
    fl_msg_kind msg;
    int64_t round;
    uint64_t tag;
} sim_line;

typedef struct sim_call {
    int proc, life, party;
    uint64_t tag;
    fl_msg_kind kind;
    int64_t round;
    int64_t push; /* number of the push, -1: none */
    bool open, arrived, answered, gone;
} sim_call;

/* The content of a push: who made it, what it is for, and its value. */
typedef struct sim_grad {
    int64_t push; /* number in sim.push */
    fl_id session;
    int rank, server, part, parts;
    int64_t round;
    int64_t batch; /* which batch of the rank it was made from; 0: none */
    float value;
} sim_grad;

/* A part of a batch of a rank, for a server. */
typedef struct sim_share {
    int rank, server, part;
    int64_t batch; /* 0: its batch has no position */
} sim_share;

typedef struct sim_push {
    int applied; /* how often it was applied */
    sim_share share;
} sim_push;

/* A part of a snapshot. */
typedef struct sim_part {
    bool written;
    bool damaged; /* its server cannot restore it */
    float value;
    int64_t version;
    fl_str image;
} sim_part;

typedef struct sim_snapshot {
    int64_t number, version, generation;
    bool whole; /* it was committed, and is neither removed nor set aside */
    bool aside; /* some server could not restore it */
    int run;    /* which run of the job it is of */
    FL_VEC(uint64_t)
    state; /* state ids of server 0 that it belongs to; the
              first has taken it */
    fl_str coord;
    sim_part *part; /* by server */
} sim_snapshot;

/* What a store has been told to apply and has not applied yet; or a snapshot
 * that it has been told to take, or a session that it has to forget. */
typedef struct sim_apply {
    int n;
    int64_t snapshot; /* 0: none */
    bool forgets;
    fl_id session; /* forgets: that one */
    int64_t round;
    fl_staged *by; /* copies; the blobs are the server's */
} sim_apply;

typedef struct sim sim;

/* A push that is kept until its round is closed. */
typedef struct sim_entry {
    fl_push_id id;
    fl_blob bytes;
} sim_entry;

/* Async: which pushes of a session were applied. */
typedef struct sim_seen {
    fl_id session;
    int rank;
    fl_window window;
    int64_t step, first; /* as in fl_server_rewindow */
} sim_seen;

/* What outlives a server process. */
typedef struct sim_disk {
    fl_str server, coord; /* images; empty: none yet */
    FL_VEC(sim_entry) entry;
    FL_VEC(sim_seen) seen;
    float value;
    int64_t done; /* rounds that were applied */
} sim_disk;

typedef struct sim_server {
    sim *sim;
    int index;
    fl_server *server;
    fl_outbox out;
    fl_store store;
    sim_disk disk;
    bool dying; /* killed in the middle of an event: nothing is kept or sent */
    FL_VEC(sim_apply) apply;
    int64_t version;
    int life;           /* counts starts of the process */
    int losses;         /* counts starts without state */
    int64_t generation; /* how often it has gone back */
    int epoch;          /* losses of the coordinator when this state began */
    fl_state state;
    int64_t down_until; /* connections are refused until then */
    bool left;          /* the process has ended */
    int code;
} sim_server;

typedef struct sim_proc {
    sim *sim;
    int index, life;   /* life: counts restarts */
    int id;            /* the trainer id that it is started with */
    fl_client *client; /* NULL: not running */
    fl_outbox out;
    fl_app app;
    fl_entropy entropy;
    uint64_t open; /* its open call */
    fl_id open_session;
    int goal; /* completes at this round (sync) or after these steps (async) */
    int steps, restarts;
    int beside; /* a step without a pull: 1: its pushes are made; 2: its
                   position is sent */
    fl_id beside_session;
    int64_t *seen; /* newest version heard, by server */
    int *used;     /* losses of each server that it has heard, plus 1; 0: none
                    */
    bool misled;   /* it has heard two states of a server */
    int rank;      /* the last one it had; -1: none */
    bool finished; /* has left the job, or will never come back */
    bool given_up; /* will not complete */
    bool rewound;  /* is to be started again, because the job went back */
} sim_proc;

/* A decided round. */
typedef struct sim_round {
    fl_member *member; /* P(round): the sessions whose gradients count */
    int n;
    float *value; /* the value that each server must have after the round */
} sim_round;

struct sim {
    fl_sim_opts opts;
    fl_sim_result *result;
    fl_str *report;
    fl_job job;
    fl_entropy dice;
    int64_t now, storm_ends;
    uint64_t order;
    FL_VEC(sim_event) heap;
    FL_VEC(sim_call) call;
    FL_VEC(sim_push) push;
    FL_VEC(sim_share)
    used; /* async: what was applied of batches with a position */
    FL_VEC(sim_round) round;
    FL_VEC(sim_snapshot) snapshot;
    int64_t every; /* time between snapshots; 0: none are taken */
    int run;       /* which run it is: a job that begins anew is another
                      one */
    int runs;
    fl_msg **close;         /* by server: the last CLOSE that was sent to it */
    FL_VEC(fl_member) view; /* the coordinator's last VIEW */
    FL_VEC(fl_id) gone;     /* sessions that left a view */
    int64_t view_number;
    bool *came;       /* by rank: a session has held it */
    int64_t ended_at; /* when the coordinator ended the job; 0: it has not */
    int64_t *lost_at; /* by rank: when it was first lost in the open round; 0:
                         it was not */
    fl_coord *coord;
    fl_outbox coord_out;
    bool coord_left;
    sim_server *server;
    sim_proc *proc;
    int procs;       /* trainer processes; one more if there is a rival */
    int64_t *asleep; /* by party: stopped until this time */
    int64_t *cut;    /* by pair of hosts: no message passes until this time */
    int parties;
    /* the faults */
    int drop, twice; /* lost and doubled messages of 1000 */
    int64_t delay;   /* of a message, at most */
    bool storm;      /* processes have faults too */
    bool positioned; /* steps have positions */
    bool disorderly; /* END did not name a version to end with */
    int crashes;     /* server processes that are still to be killed between
                        two stores */
    sim_line history[SIM_HISTORY];
    bool broken;
};

/* --- sim.c --- */

uint64_t sim_dice(sim *s, uint64_t n); /* 0 .. n-1 */
void sim_at(sim *s, int64_t after, sim_event e);
void sim_drain(sim *s, int party);     /* send what is in its outbox */
int sim_host(const sim *s, int party); /* the coordinator's is server 0 */
int sim_life(const sim *s, int party); /* of the process, now */
int sim_losses(const sim *s, int party);
/* Whether the coordinator of the server's present life still runs. Only then
 * the checks know what the server must do. */
bool sim_is_led(const sim *s, const sim_server *v);
/* Which state of the sender's a message is of. */
int sim_origin(const sim *s, int party);
int sim_coord(const sim *s); /* party numbers */
int sim_trainer(const sim *s, int proc);

/* --- sim_party.c --- */

void sim_party_init(sim *s);
void sim_party_fini(sim *s);
void sim_proc_start(sim *s, int proc);
void sim_proc_die(sim *s, int proc);
void sim_proc_work(sim *s, int proc);
void sim_server_replace(sim *s, int server);
void sim_server_crash(sim *s, int server, int64_t down); /* keeps its disk */
/* Made anew by its own process, without state. */
void sim_server_renew(sim *s, int server);
void sim_forget_rounds(sim *s);
void sim_store_done(sim *s, int server);
float sim_gradient(int rank, int64_t round, int server, int part);
int sim_parts(int64_t round, int server);

/* --- sim_snapshot.c --- */

void sim_snapshot_cut(void *self, const fl_moment *cut); /* fl_store.cut */
void sim_snapshot_take(sim_server *v, const sim_apply *a);
void sim_snapshot_begin(sim *s); /* a coordinator was made */
/* After an event of the server or coordinator: commit, and go back. */
void sim_snapshot_settle(sim *s, int party);
void sim_snapshot_fini(sim *s);

/* --- sim_disk.c --- */

void sim_disk_save(sim *s, int party); /* its image, if that has changed */
fl_blob sim_disk_stage(void *self, const fl_push_id *id, fl_blob b);
void sim_disk_closed(void *self, int64_t version);
void sim_disk_forget(sim_server *v, fl_id session);
/* The parameter becomes `value`; false: it did before, or the process dies. */
bool sim_disk_apply(sim_server *v, const sim_apply *a, float value);
void sim_disk_restore(sim_server *v, int64_t now);
void sim_disk_fini(sim_disk *d);

/* --- sim_fault.c --- */

void sim_fault_plan(sim *s);
void sim_fault(sim *s);
void sim_replace(sim *s);
void sim_break_calls(sim *s, int server);
void sim_crash(sim *s);                 /* of one server, or of all */
void sim_crash_one(sim *s, int server); /* down for a time that is drawn */

/* --- sim_check.c: the invariants; a broken one ends the run --- */

void sim_fail(sim *s, char letter, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void sim_check_sent(sim *s, int party, const fl_envelope *o);
void sim_check_apply(sim *s, int server, const sim_apply *a);
void sim_check_read(sim *s, int server, const fl_msg *reply);
void sim_check_values(sim *s, sim_proc *p, int server, const fl_msg *m);
void sim_check_fenced(sim *s, const sim_proc *p);
void sim_check_heard(sim *s, sim_proc *p, int server, int losses);
/* p takes values, or completes. */
void sim_check_misled(sim *s, const sim_proc *p);
void sim_check_complete(sim *s, const sim_proc *p); /* COMPLETE has come */
void sim_check_used(sim *s, const sim_proc *p);     /* p has completed */
void sim_check_state(sim *s);                       /* after every event */
void sim_check_leave(sim *s);                       /* the coordinator leaves */
void sim_check_end(sim *s);

#endif
