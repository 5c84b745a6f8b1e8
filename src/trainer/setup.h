/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - a job is brought to servers that were started without a program.
 *
 * Trainer 0 sends each server its program and the start values of what it
 * holds. Every other trainer waits until that is done. Servers that know the
 * job already, because they were started by a script or because this trainer
 * was started again, get nothing. */
#ifndef FL_TRAINER_SETUP_H
#define FL_TRAINER_SETUP_H

#include "cluster/placement.h"
#include "exec/scope.h"
#include "exec/watch.h"
#include "graph/program.h"

typedef struct fl_setup {
    const fl_placement *place; /* of the trainer */
    /* Of each server; NULL: another trainer brings them. */
    fl_program *const *programs, *const *startups;
    const fl_program *main; /* that was cut: its parameters get start values */
    fl_scope *scope;        /* has the start values */
} fl_setup;

/* Returns when every server has the job. `by` may end the wait. Blocks: at most
 * for the job's `start`. Err: EINVAL (a server has another job, and what
 * differs; or it refuses the program), EINTR, ETIMEOUT. */
fl_err fl_setup_run(const fl_setup *s, const fl_watch *by) FL_MUST_CHECK;

#endif
