/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.h - sends and receives for an asynchronous trainer, on threads
 * beside its workers.
 *
 *     put    a worker hands over a gradient, which is added to the earlier ones
 *     take   a worker gets a parameter, if a newer one has arrived
 *
 *     sender     pushes what has gathered and waits until it is applied
 *     receiver   pulls the parameters when enough batches have been pushed
 *
 * While earlier gradients are being pushed, new ones are added up. A worker
 * that is too far ahead waits. In a half asynchronous job the workers meet at a
 * barrier after every batch: when the last one has arrived, the sender pushes
 * the sum of all their gradients and pulls, then all go on.
 *
 * A pass over data whose examples are counted (train/positions.h) is sent in
 * groups of batches. Its one worker says where a group ends and which examples
 * are used up there; the gradients of a group are one push, and their position
 * is kept with it. What is sent then depends on the data alone, and a process
 * that is started again makes the same pushes.
 *
 * Easy to get wrong: gradients that were handed over are lost when the process
 * ends, unless they were flushed. */
#ifndef FL_TRAINER_COMMUNICATOR_H
#define FL_TRAINER_COMMUNICATOR_H

#include "exec/scope.h"
#include "trainer/gathered.h"
#include "trainer/trainer.h"

/* Thread: any, except for new and free. If one of its own threads fails, every
 * call fails with that error. In a forked child every call fails as
 * fl_trainer_check_process does. */
typedef struct fl_communicator fl_communicator;

/* Start the threads for the send and recv ops of p, a trainer's program of an
 * asynchronous job. FLAGS_communicator_* are read here. Own: new; the
 * trainer outlives it. Err: EINVAL. */
fl_err fl_communicator_new(fl_trainer *t, const fl_program *p,
                           fl_communicator **out) FL_MUST_CHECK;
/* Gradients that were not flushed are dropped. NULL is allowed. */
void fl_communicator_free(fl_communicator *c);

/* Hand over a gradient; v is copied. Blocks: while too many batches wait to be
 * sent; `by` may end the wait (NULL: nobody). Err: ENOENT, ESHAPE, EINTR. */
fl_err fl_communicator_put(fl_communicator *c, const char *grad,
                           const fl_value *v, const fl_watch *by) FL_MUST_CHECK;

/* Let a gradient be made: x adds it to what has gathered, with the lock of the
 * variable held. Otherwise as fl_communicator_put. */
fl_err fl_communicator_make(fl_communicator *c, const char *grad,
                            const fl_addend *x,
                            const fl_watch *by) FL_MUST_CHECK;

/* Copy the parameter into the memory of `out`, if it is newer than what was
 * copied there before. Other threads may read that memory meanwhile.
 * Err: ENOENT, ESHAPE. */
fl_err fl_communicator_take(fl_communicator *c, const char *param,
                            fl_tensor *out) FL_MUST_CHECK;

/* Half asynchronous jobs. Blocks: until all workers are at the barrier and
 * their gradients are applied. */
fl_err fl_communicator_barrier(fl_communicator *c,
                               const fl_watch *by) FL_MUST_CHECK;
/* n more workers (n < 0: fewer) take part in barriers from now on. If none is
 * registered, a barrier does not wait for other workers. */
void fl_communicator_add_workers(fl_communicator *c, int n);

/* Send all gradients that were handed over before; between begin_groups and
 * end_groups: all complete groups. Blocks: until they are applied and the
 * parameters have been pulled after that. */
fl_err fl_communicator_flush(fl_communicator *c,
                             const fl_watch *by) FL_MUST_CHECK;

/* The number of batches of a group: as many as one push may carry. 0: there are
 * no groups, because the job is half asynchronous or nothing is sent. */
int64_t fl_communicator_group(const fl_communicator *c);

/* From now on gradients are sent in groups. What was handed over before is sent
 * first. */
fl_err fl_communicator_begin_groups(fl_communicator *c,
                                    const fl_watch *by) FL_MUST_CHECK;
/* All gradients since the last call, or since begin_groups, are a group, with
 * which the examples up to `position` (copied) are used up. Blocks: as put. */
fl_err fl_communicator_end_group(fl_communicator *c, const char *position,
                                 const fl_watch *by) FL_MUST_CHECK;
/* There are no more groups. Gradients that are in no group are dropped; groups
 * that are complete are still sent. */
void fl_communicator_end_groups(fl_communicator *c);

/* fl_communicator_take for every parameter that the scope has. */
fl_err fl_communicator_fill(fl_communicator *c, fl_scope *s) FL_MUST_CHECK;

typedef struct fl_communicator_stats {
    int64_t batches; /* batches whose gradients are applied */
    int64_t pushes;  /* pushes that carried them */
    int64_t pulls;
    int64_t lost; /* batches whose gradients were lost with a session */
} fl_communicator_stats;
fl_communicator_stats fl_communicator_get_stats(fl_communicator *c);

#endif
