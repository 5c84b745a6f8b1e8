/* SPDX-License-Identifier: Apache-2.0 */
/* exe.h - the executor, inside. fluid.h has what users call. */
#ifndef FL_EXEC_EXE_H
#define FL_EXEC_EXE_H

#include "exec/plan.h"

/* The clock and the poll of env->watch are copied. */
fl_exe *fl_exe_make(const fl_exec_env *env);

/* The plan of a request, which is compiled if there is none. Own: the
 * executor's. */
fl_err fl_exe_plan(fl_exe *e, const fl_request *o, fl_plan **out) FL_MUST_CHECK;

#endif
