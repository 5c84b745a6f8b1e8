/* SPDX-License-Identifier: Apache-2.0 */
/* shard.h - the parameters of one server, and what keeps them.
 *
 *     store       values, and the threads that own them (store.h)
 *     recovery    level `process`: the state directory, which outlives the
 *                 process (recovery.h)
 *     redo        level `host`: base and journal, which outlive the host, too
 *                 (redo.h)
 *
 * Only a shard knows which of them there are. Its values come from the state of
 * an earlier process, from base and journal, from a snapshot, or from the
 * startup program.
 *
 *     fl_shard_open      finds the values, or begins with new ones
 *     fl_shard_restore   the machines go on where they were
 *     fl_shard_begin     the journal begins
 *     fl_shard_stop      the owners end
 *     fl_shard_close     the files stay or are removed
 *
 * Thread: the one that holds the lock of the machines, except where a function
 * says something else. */
#ifndef FL_PSERVER_SHARD_H
#define FL_PSERVER_SHARD_H

#include "pserver/snapshots.h"
#include "pserver/store.h"

typedef struct fl_shard fl_shard;

typedef struct fl_shard_opts {
    const fl_exec_env *env;
    const fl_program *program; /* of the server */
    const fl_op *op;           /* the program's listen_and_serv */
    fl_scope *scope;           /* where the startup program has run */
    const fl_placement *place;
    const fl_job *job;
    fl_snapshots *snapshots; /* gets `restore` if the job begins with one */
    const char *name;        /* of the state; NULL: that of job and server */
    const fl_packet *setup;  /* the job, which the state keeps; NULL: the server
                                knows it without. Only for fl_shard_open */
    bool existing;           /* a state that is not there is an error */
    bool brought;            /* a trainer has just brought the job: if it cannot
                                begin, nothing of it stays */
    int (*poll)(void *self); /* not 0 ends a wait for the state */
    bool (*serves)(void *self); /* as in fl_recovery_opts */
    void *self;                 /* first argument of the callbacks */
    /* As in fl_pstore_opts: */
    void (*applied)(void *self, const char *why);
    bool (*full)(void *self, const char *why);
    void (*answer)(void *self, fl_peer to, const fl_msg *m);
    void (*written)(void *self, int64_t number, const char *why);
    /* Records up to `number` are on disk: fl_shard_release is due. Thread: the
     * journal's. */
    void (*durable)(void *self, uint64_t number);
} fl_shard_opts;

/* Whether the state of a server waits for the server that runs this startup
 * program; for fl_exec_env. Thread: any. */
bool fl_shard_kept(const fl_program *startup);

/* --- life: the caller's thread, without the lock --- */

/* Own: *out is new; all that opts points to outlives it. Err: those of
 * fl_recovery_open, fl_pstore_new, fl_redo_replay and fl_snapshots_choose.
 * Blocks: while another process holds the state, and for a replay. */
fl_err fl_shard_open(const fl_shard_opts *opts, fl_shard **out) FL_MUST_CHECK;

/* Whether a state is kept: fl_shard_save is to be called. */
bool fl_shard_keeps(const fl_shard *s);

/* The id of the state, and how often it was started. */
fl_state fl_shard_state(const fl_shard *s);

/* What the state machine of the server calls. Thread: the machine's. */
const fl_store *fl_shard_ops(const fl_shard *s);

/* The machines were made: see fl_recovery_restore. */
fl_err fl_shard_restore(fl_shard *s, fl_server *server, fl_coord *coord,
                        int64_t now) FL_MUST_CHECK;

/* After that: see fl_kept_resume and fl_redo_begin. */
fl_err fl_shard_begin(fl_shard *s, fl_server *server) FL_MUST_CHECK;

/* The job cannot begin. Takes s; fl_errmsg stays. NULL is fine. */
void fl_shard_undo(fl_shard *s);

/* Finish all rounds and pulls, then end the threads of the store. The machines
 * are closed. Blocks: until they are finished. */
void fl_shard_stop(fl_shard *s);

/* After fl_shard_stop, when nobody calls the shard any more. `remove`: the job
 * is over, and no file stays. Else the state stays, if the job goes on when the
 * process is started again. Takes s. */
void fl_shard_close(fl_shard *s, bool remove);

/* --- pushes --- */

/* Whether owners have room for what they apply: see fl_pstore_room. */
fl_err fl_shard_check_owners(fl_shard *s) FL_MUST_CHECK;

/* Whether owners have room, and so has the journal for a push of `bytes` bytes:
 * see fl_redo_room. */
fl_err fl_shard_check_room(fl_shard *s, size_t bytes) FL_MUST_CHECK;

/* Copy a push to where it is kept: see fl_recovery_stage. Thread: the
 * network's, until fl_shard_close. */
fl_err fl_shard_stage(fl_shard *s, const fl_packet *packet, fl_arena *arena,
                      fl_msg *m) FL_MUST_CHECK;

/* Whether pushes must wait for a new base of the journal. */
bool fl_shard_rebasing(fl_shard *s);

/* The store has called `applied` once more. */
void fl_shard_applied(fl_shard *s);

/* --- what the journal must contain first --- */

/* Make sure that there is room for what a message adds to the images of the
 * machines: see fl_recovery_reserve. */
fl_err fl_shard_reserve(fl_shard *s, const fl_msg *m) FL_MUST_CHECK;

/* Save the images of both machines, for fl_machines_job. */
void fl_shard_save(fl_shard *s, const void *server, size_t n_server,
                   const void *coord, size_t n_coord);

/* Whether the message must wait for the journal: see fl_redo_hold. */
bool fl_shard_hold(fl_shard *s, const fl_envelope *e);
bool fl_shard_holds(const fl_shard *s); /* whether messages wait */
void fl_shard_release(fl_shard *s, uint64_t number,
                      void (*send)(void *self, const fl_envelope *e),
                      void *self);

/* --- time passes --- */

/* Err: EIO: the images of the machines could not be saved. */
fl_err fl_shard_check_saved(const fl_shard *s) FL_MUST_CHECK;

/* Several times a second. Let the journal try again to write what had no room,
 * and warn if the files of the state were removed. Err: EIO: the journal has
 * failed. Thread: the caller's, without the lock. */
fl_err fl_shard_tick(fl_shard *s, int64_t now) FL_MUST_CHECK;

/* Copy the state to a new base if one is due: see fl_redo_renew. */
fl_err fl_shard_renew(fl_shard *s, bool *copied) FL_MUST_CHECK;

/* Make the copy durable. Thread: the caller's, without the lock. */
fl_err fl_shard_commit(fl_shard *s) FL_MUST_CHECK;

/* --- what `paddle why` shows --- */

/* See fl_pstore_waits. */
void fl_shard_waits(fl_shard *s, fl_str *rows);

/* Append "durability LEVEL"; `names`: also where the files are. */
void fl_shard_about(fl_shard *s, bool names, fl_str *text);

#endif
