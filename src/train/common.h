/* SPDX-License-Identifier: Apache-2.0 */
/* common.h - what the threads of a training share, and what each has alone.
 *
 * Persistable variables are common. But one that a step writes before it reads
 * it (a rate that a schedule computes, a temporary that somebody wants to look
 * at) passes nothing on from step to step: threads that wrote it at a time
 * would only hinder each other, so the first has that of the scope and the
 * others have one of their own. */
#ifndef FL_TRAIN_COMMON_H
#define FL_TRAIN_COMMON_H

#include "exec/scope.h"
#include "graph/program.h"

typedef struct fl_common {
    FL_VEC(const char *) state; /* written, after it was read: common */
    FL_VEC(const char *) fresh; /* written first */
} fl_common;

void fl_common_init(fl_common *c, const fl_program *p);
void fl_common_fini(fl_common *c);

/* Before threads start: memory that is written is nobody else's, so that no
 * thread has to move it. */
fl_err fl_common_settle(const fl_common *c, fl_scope *s) FL_MUST_CHECK;

/* A scope for a thread that is not the first. Own: free it before its parent.
 */
fl_scope *fl_common_scope(const fl_common *c, fl_scope *parent);

#endif
