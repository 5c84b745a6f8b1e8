/* SPDX-License-Identifier: Apache-2.0 */
/* common.h - which variables the threads of a training share.
 *
 * Threads share persistable variables, except those that a step writes before
 * it reads them: a learning rate that a schedule computes, or a temporary that
 * the user wants to see. Such a variable carries nothing from step to step, and
 * threads that wrote the same one would slow each other down. So the first
 * thread uses that of the scope, and the others have their own. */
#ifndef FL_TRAIN_COMMON_H
#define FL_TRAIN_COMMON_H

#include "exec/scope.h"
#include "graph/program.h"

typedef struct fl_common {
    FL_VEC(const char *) state; /* written after it was read: shared */
    FL_VEC(const char *) fresh; /* written first: one for each thread */
} fl_common;

void fl_common_init(fl_common *c, const fl_program *p);
void fl_common_fini(fl_common *c);

/* To be called before threads start: copy tensors that are written and share
 * memory with others, so that no thread has to move one. */
fl_err fl_common_settle(const fl_common *c, fl_scope *s) FL_MUST_CHECK;

/* A scope for a thread that is not the first. Own: free it before its parent.
 */
fl_scope *fl_common_scope(const fl_common *c, fl_scope *parent);

#endif
