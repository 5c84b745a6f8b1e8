/* SPDX-License-Identifier: Apache-2.0 */
/* bare.h - how a server that was started without a program gets its job.
 *
 *     SETUP message         answered at once, or kept as a part of the job
 *                           (network's thread)
 *     fl_bare_take          puts the parts together (arrival.h); when all are
 *                           here, the job begins (caller's thread)
 *     fl_bare_resume        before that: the job may be in a state that an
 *                           earlier process has left
 *
 * A job from a state belongs to trainers that may be gone. If none of them is
 * heard for a lease, and another job comes, the server gives up the old one.
 *
 * A server that has its program from a script uses this type, too: it answers
 * SETUP messages with whose job it runs.
 *
 * Thread: the one that holds the lock of the machines, except where a function
 * says otherwise. */
#ifndef FL_PSERVER_BARE_H
#define FL_PSERVER_BARE_H

#include "pserver/arrival.h"
#include "pserver/machines.h"

typedef struct fl_bare fl_bare;

typedef struct fl_bare_opts {
    const fl_exec_env *env; /* runs the startup program */
    int trainers;           /* that the server was started for */
    bool keep;              /* another job may follow this one */
    fl_machines *machines;  /* with the lock, and a log */
    void *self;             /* first argument of the callbacks */
    /* Answer a call. Thread: any. */
    void (*answer)(void *self, uint64_t call, const fl_msg *m);
    /* All parts of a job are here: begin to serve it. `who` has brought it.
     * kept: it is from a state, whose parameters it goes on with. The lock is
     * not held. */
    fl_err (*begin)(void *self, const fl_arrival *job, const char *who,
                    bool kept);
} fl_bare_opts;

/* Own: new. Free ends the program and the scope of the job, too. */
fl_bare *fl_bare_new(const fl_bare_opts *opts);
void fl_bare_free(fl_bare *b); /* NULL is fine */

/* --- SETUP messages --- */

/* The server has no job yet: answer, or keep the message as a part. `from`:
 * address of the caller. */
void fl_bare_add(fl_bare *b, uint64_t call, const fl_msg *m, const char *from,
                 int64_t now);

/* The server has a job already: say whose it is, or that it is about to end. */
void fl_bare_refuse(fl_bare *b, uint64_t call, const fl_msg *m,
                    const fl_job *job, const fl_server *server, int64_t now);

/* --- the caller's thread, without the lock --- */

/* Take the next part, and answer it. False: none has come. */
bool fl_bare_take(fl_bare *b);

/* Begin the job of an earlier process at this address, if it has left a state,
 * or a base at level `host`. Err: those of `begin` and of the state. */
fl_err fl_bare_resume(fl_bare *b, const char *address, const fl_job *limits,
                      const fl_clock *clock) FL_MUST_CHECK;

/* The job as a message, for a state. Own: new; NULL: the job did not arrive in
 * parts, nor from a state. */
fl_packet *fl_bare_encode(fl_bare *b);

/* The name of the state that the server keeps. NULL: it keeps none under its
 * address. */
const char *fl_bare_state_name(const fl_bare *b);

/* --- a job from a state --- */

/* A trainer of the job was heard. */
void fl_bare_hear(fl_bare *b);

/* The job has failed: give it up if it is from a state and none of its trainers
 * was heard. False: it is not, or it was given up before. */
bool fl_bare_give_up(fl_bare *b);

/* Whether the job was given up: the server waits for another one. */
bool fl_bare_gave_up(const fl_bare *b);

#endif
