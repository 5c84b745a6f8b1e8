/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the engine handle: what all else hangs on. */
#ifndef FL_API_ENGINE_H
#define FL_API_ENGINE_H

#include "base/disk.h"
#include "base/random.h"
#include "collective/world.h"
#include "exec/plan.h"
#include "op/op.h"
#include "trainer/service.h"

/* Thread: immutable once made, but for the entropy, which any may draw. */
struct fl_engine {
    fl_registry *registry;
    const fl_disk *disk;
    fl_entropy entropy;
    fl_service *service; /* the jobs that its programs are parts of */
    fl_worlds *worlds;   /* the ranks that its programs have joined */
    fl_arena *arena;     /* what the tables below need */
    const fl_op_info *ops;
    const fl_signature *layers, *optimizers;
    int n_ops, n_layers, n_optimizers;
};

/* What programs of this engine run with. */
fl_exec_env fl_engine_env(fl_engine *e);

void fl_engine_list(fl_engine *e); /* fill the tables; tables.c */

/* Append a line for each file of a saved folder that is not as it was saved.
 * Err: the first fault, which has a line as well. digest.c */
fl_err fl_engine_damage(fl_engine *e, const char *dir,
                        fl_str *lines) FL_MUST_CHECK;

#endif
