/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.h - all parameters of a job, from its servers. */
#ifndef FL_TRAINER_FETCH_H
#define FL_TRAINER_FETCH_H

#include "exec/scope.h"
#include "trainer/trainer.h"

/* Copy each parameter of p that servers hold into the scope. Those whose rows
 * lie by id are left out. In a synchronous job all values are of one version.
 * Err: as fl_trainer_lookup; EPROTO. */
fl_err fl_fetch_params(fl_trainer *t, const fl_watch *by, const fl_program *p,
                       fl_scope *scope) FL_MUST_CHECK;

#endif
