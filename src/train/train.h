/* SPDX-License-Identifier: Apache-2.0 */
/* train.h - one pass over a dataset by several threads.
 *
 * The caller's thread waits, and does all that meets the user: it asks whether
 * to go on, hands over texts, shows the status. Workers (worker.h) do the
 * rest. */
#ifndef FL_TRAIN_TRAIN_H
#define FL_TRAIN_TRAIN_H

#include "exec/plan.h"

/* fl_train; env has no watch. */
fl_err fl_train_run(const fl_exec_env *env, const fl_train_opts *opts,
                    fl_progress *out) FL_MUST_CHECK;

#endif
