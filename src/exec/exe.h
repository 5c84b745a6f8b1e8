/* SPDX-License-Identifier: Apache-2.0 */
/* exe.h - the executor, inside. fluid.h has what users call. */
#ifndef FL_EXEC_EXE_H
#define FL_EXEC_EXE_H

#include "exec/plan.h"

/* env->watch is copied: who may end runs, and the clock. */
fl_exe *fl_exe_make(const fl_exec_env *env);

/* The plan for these names: found or made. It is the executor's. */
fl_err fl_exe_plan(fl_exe *e, const fl_request *o, fl_plan **out) FL_MUST_CHECK;

#endif
