/* trainer.h - a trainer's end of a job: what send, recv and the lookups call.
 *
 *     recv before any step    join, wait for the others, pull
 *     send                    gradients of the step: small ones share a push
 *     send_barrier            meet the others, pull (synchronous)
 *     first recv after sends  the same without meeting (asynchronous)
 *     recv                    what was pulled; a name not asked for before is
 *                             asked for, and pulled with every step from then
 *
 * Everything blocks the caller and nobody else: leases are renewed by a thread
 * of its own. A wait that takes long says for whom. `by` is the watch of the
 * caller's own run: its poll may end the wait, and the time is charged to it;
 * NULL: nobody watches. A trainer keeps no watch, since callers come and go. A
 * session that was fenced joins anew within the wait: the step's gradients are
 * dropped with a warning, and the caller goes on with its next batch. */
#ifndef FL_TRAINER_TRAINER_H
#define FL_TRAINER_TRAINER_H

#include "graph/program.h"
#include "trainer/lookup.h"

/* Thread: one caller at a time, but for lookups and pushes: those of several
 * threads go on beside each other. */
typedef struct fl_trainer fl_trainer;

/* Own: new. It connects when first used. `limits`: zero is default. */
fl_err fl_trainer_new(const fl_placement *place, const fl_job *limits,
                      fl_trainer **out) FL_MUST_CHECK;
void fl_trainer_free(fl_trainer *t); /* leaves without a word if it must */

/* EINVAL with a sentence in a process that was forked from the one that made
 * the trainer: its threads and connections are the parent's, and its locks may
 * be held by threads that do not exist here. Every other function asks this
 * first; leave and free then have nothing to do. */
fl_err fl_trainer_check_process(const fl_trainer *t) FL_MUST_CHECK;

bool fl_trainer_is_at(const fl_trainer *t, const fl_placement *place);
const fl_placement *fl_trainer_place(const fl_trainer *t);

/* v is not changed before the next step: it is lent, not copied. */
fl_err fl_trainer_send(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, const fl_value *v) FL_MUST_CHECK;
fl_err fl_trainer_step(fl_trainer *t, const fl_watch *by) FL_MUST_CHECK;
/* Asynchronous, and something was sent since the last step: a step. */
fl_err fl_trainer_flush(fl_trainer *t, const fl_watch *by) FL_MUST_CHECK;
fl_err fl_trainer_recv(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_tensor *out) FL_MUST_CHECK;

/* Asynchronous jobs, beside steps: gradients that servers have applied when it
 * returns. Memory is lent until then. `last`: a step's end, for schedules. If
 * *lost was false and is true then, a session was lost, and with it what was
 * not applied yet. One thread at a time. */
typedef struct fl_gradient {
    int server;
    const char *name;
    const fl_value *value;
} fl_gradient;
fl_err fl_trainer_push(fl_trainer *t, const fl_watch *by, int n,
                       const fl_gradient *gradients, bool last,
                       bool *lost) FL_MUST_CHECK;

/* Values of several servers, which are asked at once. Any thread. */
fl_err fl_trainer_lookup(fl_trainer *t, const fl_watch *by, int n,
                         const fl_lookup *lookups) FL_MUST_CHECK;

/* Tell n counts of this trainer so far, under a name that other trainers use
 * alike (tally.h), and get in their place the sum of what all of the job told
 * last, of so many trainers. Any thread, one at a time. It never joins, and the
 * trainer goes on whatever fails. limit: ns. Err: EIO, ETIMEOUT, EPROTO. */
fl_err fl_trainer_tally(fl_trainer *t, const fl_watch *by, int64_t limit,
                        const char *name, int64_t n, int64_t *counts,
                        int *trainers) FL_MUST_CHECK;

/* Complete (code 0), or fail with a sentence; the coordinator knows when it
 * returns, or the time is over (ns; 0: the job's limits). Twice is fine. */
fl_err fl_trainer_leave(fl_trainer *t, const fl_watch *by, int code,
                        const char *why, int64_t limit) FL_MUST_CHECK;

#endif
