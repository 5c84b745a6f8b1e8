/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the engine: the handle that owns all state. */
#ifndef FL_API_ENGINE_H
#define FL_API_ENGINE_H

#include "base/disk.h"
#include "base/random.h"
#include "collective/world.h"
#include "exec/plan.h"
#include "op/op.h"
#include "trainer/service.h"

/* Thread: immutable once made, except for the entropy, which any thread may
 * use. */
struct fl_engine {
    fl_registry *registry;
    const fl_disk *disk;
    fl_entropy entropy;
    fl_service *service; /* the trainers of its programs, by job */
    fl_worlds *worlds;   /* the worlds that its programs have joined */
    fl_arena *arena;     /* holds the tables below */
    const fl_op_info *ops;
    const fl_signature *layers, *optimizers;
    int n_ops, n_layers, n_optimizers;
};

/* The environment in which programs of this engine run. */
fl_exec_env fl_engine_env(fl_engine *e);

void fl_engine_list(fl_engine *e); /* fill the tables; tables.c */

/* Append a line for each file of a saved folder that differs from what was
 * saved. Err: the first fault, which has a line, too. Defined in digest.c. */
fl_err fl_engine_damage(fl_engine *e, const char *dir,
                        fl_str *lines) FL_MUST_CHECK;

#endif
