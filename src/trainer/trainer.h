/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.h - a trainer's side of a job: what the send, recv and lookup
 * operators call.
 *
 *     recv before the first step  join, wait for the other trainers, pull
 *     send                        collect gradients; push them when there are
 *                                 enough
 *     send_barrier                end the step: meet the others, then pull
 *     first recv after sends      in asynchronous jobs: end the step, pull
 *     recv                        take a value that was pulled; other values
 *                                 are asked for now and pulled by later steps
 *
 * A call blocks its caller only; a thread of the trainer renews the lease. A
 * wait that takes long logs whom it waits for. `by` is the watch of the
 * caller's run: its poll may end the wait (EINTR), and the time of the wait is
 * added to it; NULL: nobody watches.
 *
 * If the session is lost (fenced), the trainer joins with a new one during the
 * wait. The gradients of the step are dropped with a warning, and the caller
 * goes on with its next batch. */
#ifndef FL_TRAINER_TRAINER_H
#define FL_TRAINER_TRAINER_H

#include "graph/program.h"
#include "trainer/lookup.h"

/* Thread: one caller at a time, except for fl_trainer_lookup, fl_trainer_push
 * and fl_trainer_tally. */
typedef struct fl_trainer fl_trainer;

/* Own: new. It connects when it is first used. Fields of `limits` that are 0
 * have their defaults; NULL: all of them. Err: EINVAL. */
fl_err fl_trainer_new(const fl_placement *place, const fl_job *limits,
                      fl_trainer **out) FL_MUST_CHECK;
/* Without fl_trainer_leave before, the job counts the trainer as lost. */
void fl_trainer_free(fl_trainer *t);

/* EINVAL in a process that was forked from the one that made the trainer: its
 * threads and connections belong to the parent, and its locks may be held by
 * threads that do not exist here. All functions below fail with it, except
 * for leave and free, which do nothing there. */
fl_err fl_trainer_check_process(const fl_trainer *t) FL_MUST_CHECK;

/* Whether t is the trainer of this job, with this id and these servers. */
bool fl_trainer_is_at(const fl_trainer *t, const fl_placement *place);
const fl_placement *fl_trainer_placement(const fl_trainer *t);

/* Send a gradient to a server. v is borrowed and must not change before the
 * step has ended. */
fl_err fl_trainer_send(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, const fl_value *v) FL_MUST_CHECK;

/* End the step: push the remaining gradients, meet the others if the job is
 * synchronous, and pull. */
fl_err fl_trainer_step(fl_trainer *t, const fl_watch *by) FL_MUST_CHECK;

/* End the step, if the job is asynchronous and something was sent. */
fl_err fl_trainer_flush(fl_trainer *t, const fl_watch *by) FL_MUST_CHECK;

/* Get the value of a variable from a server, without a copy: *pulled is the
 * item of the last pull with a reference to its parcel, which the caller drops.
 * If the value was not pulled, the item is NULL and `out` has the value. */
fl_err fl_trainer_take(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_received *pulled,
                       fl_tensor *out) FL_MUST_CHECK;

/* Get the value of a variable from a server into `out`. */
fl_err fl_trainer_recv(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_tensor *out) FL_MUST_CHECK;

/* Get rows or values from several servers at once. Thread: any. */
fl_err fl_trainer_lookup(fl_trainer *t, const fl_watch *by, int n,
                         const fl_lookup *lookups) FL_MUST_CHECK;

/* Ask for rows before they are needed, and return at once. The lookups stay as
 * they are until fl_trainer_answer. In a synchronous job, the rows come with
 * the values of the next step and are used only if that step is the last one
 * before fl_trainer_answer. 0: nothing was asked: the job is half asynchronous,
 * its session is not ready, or FLUID_PREFETCH is 0. Thread: any. */
uint64_t fl_trainer_ask(fl_trainer *t, int n, const fl_lookup *lookups);

/* fl_trainer_lookup of what was asked for before; if that is forgotten, it is
 * asked for now. */
fl_err fl_trainer_answer(fl_trainer *t, const fl_watch *by, uint64_t ticket,
                         int n, const fl_lookup *lookups) FL_MUST_CHECK;

/* A gradient, or a piece of one, for a server. */
typedef struct fl_gradient {
    int server;
    const char *name; /* on the server */
    const fl_value *value;
} fl_gradient;

/* Push gradients of an asynchronous job, beside its steps, and wait until the
 * servers have applied them. They count as one step for learning-rate
 * schedules. *lost is set to true if a session was lost: gradients that were
 * not applied before are lost with it. Thread: one at a time, any. */
fl_err fl_trainer_push(fl_trainer *t, const fl_watch *by, int n,
                       const fl_gradient *gradients, bool *lost) FL_MUST_CHECK;

/* The same for the gradients of all examples up to `position`: wait until the
 * servers have applied them and the position is kept. If a session is lost, the
 * gradients are pushed again, unless they count; servers that have applied
 * them do not apply them again. */
fl_err fl_trainer_push_at(fl_trainer *t, const fl_watch *by, int n,
                          const fl_gradient *gradients,
                          const char *position) FL_MUST_CHECK;

/* --- positions in data: a trainer that is started again goes on where the
 * rank's last step that counts has ended --- */

/* Begin a pass over data: join, if that was not done. *pass is its number in
 * this process, from 0; `position` gets the text of the last step that counted
 * when the session began, or nothing. */
fl_err fl_trainer_begin_pass(fl_trainer *t, const fl_watch *by, int64_t *pass,
                             fl_str *position) FL_MUST_CHECK;

/* The coming step uses the data up to `position`. */
fl_err fl_trainer_position(fl_trainer *t, const fl_watch *by,
                           const char *position) FL_MUST_CHECK;

/* How many steps with a position count, and how many steps have lost their
 * session: before they began, so that their gradients were dropped, or before
 * they had ended. Steps of fl_trainer_push are not among them. */
void fl_trainer_count_steps(fl_trainer *t, int64_t *counted, int64_t *dropped);

/* Report n counts of this trainer to the coordinator, under a name that all
 * trainers use. `counts` gets the sum of the last reports of all trainers, and
 * *trainers the number of these. The call never joins the job, and an error has
 * no effect on the trainer. limit: ns. Thread: one at a time, any. Err: EIO,
 * ETIMEOUT, EPROTO. */
fl_err fl_trainer_tally(fl_trainer *t, const fl_watch *by, int64_t limit,
                        const char *name, int64_t n, int64_t *counts,
                        int *trainers) FL_MUST_CHECK;

/* Leave the job: complete (code 0), or fail with a sentence. Blocks: until the
 * coordinator has acknowledged, at most `limit` ns (0: the job's limits). A
 * second call does nothing. */
fl_err fl_trainer_leave(fl_trainer *t, const fl_watch *by, int code,
                        const char *why, int64_t limit) FL_MUST_CHECK;

#endif
