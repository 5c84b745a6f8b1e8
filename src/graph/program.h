/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - program, block, op, var: the graph as data.
 *
 * A program owns everything in it; nothing is freed before the program is.
 * Every change increments `version`, so that plans know that they are stale.
 * Names, descs and attributes live in the program's arena. */
#ifndef FL_GRAPH_PROGRAM_H
#define FL_GRAPH_PROGRAM_H

#include "base/handle.h"
#include "base/map.h"
#include "op/op.h"

/* A variable as a program describes it. */
struct fl_var {
    const char *name;
    fl_kind kind; /* FL_LOD_TENSOR by default */
    fl_dtype dtype;
    fl_shape shape;
    int lod_level;
    bool persistable;
    bool stop_gradient;
    bool is_data;
    bool absent; /* this process has no elements of it: plans leave out ops that
                    write only absent variables, and lookups ask servers */
    const fl_param_info *param; /* NULL: not a parameter */
    const fl_clip *error_clip;
    /* Which optional fields are encoded. Of a decoded var, those that the file
     * had, so that it is written back byte for byte; else all. */
    bool had_lod_level, had_persistable, had_tensor;
    struct fl_block *block;
};

struct fl_op {
    fl_desc desc; /* change it by fl_op_set_* only, which check it */
    const fl_op_def *def;
    bool had_is_target, is_target; /* as in the file */
    bool foreign; /* it was decoded from bytes, so it may not use files */
    struct fl_block *block;
};

struct fl_block {
    struct fl_program *program;
    int idx, parent;  /* parent -1: the global block */
    int forward;      /* the block that this is the gradient of, or -1 */
    bool had_forward; /* as in the file */
    fl_ops ops;
    fl_map vars; /* name -> fl_var, in order of creation */
};

/* Thread: one at a time; immutable while plans of it run. */
struct fl_program {
    const fl_registry *registry; /* borrowed: outlives the program */
    fl_arena *arena;
    FL_VEC(fl_block *) blocks;
    uint64_t uid;     /* no two programs of a process share one */
    uint64_t version; /* counts changes */
    int64_t random_seed;
    fl_handle *job; /* its part in a distributed job, opaque here; NULL: it
                       runs alone */
    /* Whether the file had the optional version message, and the number in it.
     */
    bool had_version, had_version_number;
    int64_t file_version;
};

/* --- program --- */

/* Like fl_program_new of fluid.h, with a given registry. */
fl_program *fl_program_make(const fl_registry *r);

/* Set the job of p, which takes a reference; NULL: none. */
void fl_program_set_job(fl_program *p, fl_handle *job);

/* --- vars --- */

/* Declare a var with the fields of `like`; the name is copied. If the block has
 * a var of that name, it is returned, and its kind, dtype, shape, LoD level and
 * persistability must be the same. Err: EINVAL. */
fl_err fl_block_add_var(fl_block *b, const fl_var *like,
                        fl_var **out) FL_MUST_CHECK;
/* A copy of it and of all that it points to, in the arena. */
fl_param_info *fl_param_info_dup(fl_arena *a, const fl_param_info *from);
fl_clip *fl_clip_dup(fl_arena *a, const fl_clip *from); /* NULL gives NULL */
fl_err fl_block_get(const fl_block *b, const char *name, fl_var **out)
    FL_MUST_CHECK;            /* fl_block_find with an error message */
void fl_var_touch(fl_var *v); /* after a change: increments version */

/* --- ops --- */

fl_err fl_block_append_op(fl_block *b, const fl_desc *desc,
                          fl_op **out) FL_MUST_CHECK;
int fl_op_role(const fl_op *op); /* 0 if the op has no such attribute */

/* --- whole programs --- */

/* fl_program_text (fluid.h) has all of a program except regularisers, clips and
 * which optional fields its file had; text.h shows the form. The brief text
 * also leaves out attributes that have their default, op_role=0, op_namescope
 * and op_callstack. Own: the caller frees it with fl_mem_free. */
char *fl_program_brief(const fl_program *p);
/* Parse either text. Ops are checked against their tables; shapes are taken
 * from the text. Err: EINVAL, with line, column and what was expected. */
fl_err fl_program_parse(const fl_registry *r, const char *text,
                        fl_program **out) FL_MUST_CHECK;

/* Decode PaddlePaddle's ProgramDesc. Limits are checked before anything is
 * allocated. `name` is the file, for error messages. */
fl_err fl_program_decode(const fl_registry *r, const char *name,
                         const void *bytes, size_t n,
                         fl_program **out) FL_MUST_CHECK;

#endif
