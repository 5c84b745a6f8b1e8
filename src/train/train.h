/* SPDX-License-Identifier: Apache-2.0 */
/* train.h - one pass over a dataset by several threads.
 *
 * The caller's thread waits, and does all that concerns the user: it polls,
 * prints texts and shows the status. Workers (worker.h) do the rest. */
#ifndef FL_TRAIN_TRAIN_H
#define FL_TRAIN_TRAIN_H

#include "exec/plan.h"

/* Implements fl_train. env->watch is NULL. */
fl_err fl_train_run(const fl_exec_env *env, const fl_train_opts *opts,
                    fl_progress *out) FL_MUST_CHECK;

#endif
