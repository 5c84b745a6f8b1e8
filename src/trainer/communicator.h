/* communicator.h - the traffic of an asynchronous trainer, beside its work.
 *
 *     put    a worker hands a gradient over: it is added to what has gathered
 *     take   a worker takes a parameter, if a newer one has come
 *
 *     sender     takes what has gathered, pushes it, waits until it is applied
 *     receiver   pulls the parameters when enough was sent
 *
 * One gradient fills while the one before travels; a worker that is too far
 * ahead waits. Half asynchronous: workers meet after every batch (meet); the
 * last one lets the sender push the sum of all and pull, then all go on.
 *
 * Easy to get wrong: what was handed over is lost with the process unless it
 * is flushed. */
#ifndef FL_TRAINER_COMMUNICATOR_H
#define FL_TRAINER_COMMUNICATOR_H

#include "exec/scope.h"
#include "trainer/trainer.h"

/* Thread: any, but for new and free. */
typedef struct fl_communicator fl_communicator;

/* For the send and recv operators of p, which has a place in an asynchronous
 * job; FLAGS_communicator_* say how. Own: new; the trainer outlives it. Two
 * threads start. Err: EINVAL. */
fl_err fl_communicator_new(fl_trainer *t, const fl_program *p,
                           fl_communicator **out) FL_MUST_CHECK;
/* What was not flushed is dropped. NULL is fine. A forked child cannot use
 * it: its functions then fail as fl_trainer_check_process does. */
void fl_communicator_free(fl_communicator *c);

/* Hand a gradient over; v is free again. `by` may end the wait, or NULL. The
 * failure of the communicator is everybody's. */
fl_err fl_communicator_put(fl_communicator *c, const char *grad,
                           const fl_value *v, const fl_watch *by) FL_MUST_CHECK;

/* If a newer one than `out` has come it is copied there, in place: others may
 * read it meanwhile. Err: ESHAPE. */
fl_err fl_communicator_take(fl_communicator *c, const char *param,
                            fl_tensor *out) FL_MUST_CHECK;

/* Half asynchronous: until all workers are here, and it goes on. */
fl_err fl_communicator_meet(fl_communicator *c,
                            const fl_watch *by) FL_MUST_CHECK;
/* So many more (or fewer) workers meet; without any, whoever comes is alone. */
void fl_communicator_workers(fl_communicator *c, int more);

/* Until all that was handed over before is applied, and parameters have come
 * after that. */
fl_err fl_communicator_flush(fl_communicator *c,
                             const fl_watch *by) FL_MUST_CHECK;

/* The parameters that the scope has; nothing, if none have come yet. */
fl_err fl_communicator_fill(fl_communicator *c, fl_scope *s) FL_MUST_CHECK;

/* What it has done so far. */
typedef struct fl_communicated {
    int64_t batches; /* handed over, and applied */
    int64_t pushes;  /* in which they travelled */
    int64_t pulls;
    int64_t lost; /* batches that went with a session */
} fl_communicated;
fl_communicated fl_communicator_done(fl_communicator *c);

#endif
