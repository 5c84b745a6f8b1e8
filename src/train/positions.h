/* SPDX-License-Identifier: Apache-2.0 */
/* positions.h - a training that goes on where a trainer of its rank has
 * stopped.
 *
 * The coordinator keeps, with the last step of a rank that counts, which
 * examples are used up then (position.h):
 *
 *     pass 2 of 8c1f3a07: 3 5:10240:97
 *
 * is the third pass of the process, over data with that digest. A process that
 * is started again leaves out what is used up. A step whose session was lost
 * is made again with the same batch, unless it counts all the same. So every
 * example is used once in a pass.
 *
 * If a communicator sends the gradients, those of several batches are sent
 * together and have one position (fl_communicator_end_group). The batches of
 * such a group are always the same, so one thread must train them.
 *
 * Thread: one at a time: workers take turns. */
#ifndef FL_TRAIN_POSITIONS_H
#define FL_TRAIN_POSITIONS_H

#include "data/dataset.h"
#include "exec/plan.h"
#include "trainer/service.h"

typedef struct fl_positions {
    fl_trainer *trainer; /* NULL: steps have no positions */
    int64_t pass;
    uint32_t digest;               /* of the data */
    fl_position position;          /* what is used up */
    bool passed;                   /* all of this pass, and more, is used up */
    fl_communicator *communicator; /* sends groups of batches; or NULL */
    int64_t group;                 /* batches of a group */
    int64_t batches;               /* of the group that is not complete */
} fl_positions;

/* Join the job and find the position. Steps have no positions if the program
 * sends no gradients, or if a communicator sends those of several threads or of
 * a half asynchronous job. Err: EINVAL: the position is one in other data. */
fl_err fl_positions_init(fl_positions *p, const fl_exec_env *env,
                         const fl_train_opts *opts, int threads,
                         const fl_watch *by) FL_MUST_CHECK;
void fl_positions_fini(fl_positions *p);

/* Run a step on a batch with these uses: step(self), again as long as it does
 * not count because its session was lost. */
fl_err fl_positions_step(fl_positions *p, const fl_watch *by,
                         const fl_uses *uses, fl_err (*step)(void *),
                         void *self) FL_MUST_CHECK;

/* The pass is complete, or has been stopped: what is left of it is a group. */
fl_err fl_positions_end(fl_positions *p, const fl_watch *by) FL_MUST_CHECK;

#endif
