/* program.h - program, block, op, var: the graph as data.
 *
 * A program owns everything in it; nothing is freed before the program is.
 * Every change counts up `version`, by which plans know that they are stale.
 * Names, descs and attributes live in the program's arena. */
#ifndef FL_GRAPH_PROGRAM_H
#define FL_GRAPH_PROGRAM_H

#include "base/map.h"
#include "op/op.h"

/* Op roles, as Fluid numbers them; kept in the attribute op_role. */
enum {
    FL_ROLE_FORWARD = 0,
    FL_ROLE_BACKWARD = 1,
    FL_ROLE_OPTIMIZE = 2,
    FL_ROLE_RPC = 4,
    FL_ROLE_DIST = 8,
    FL_ROLE_LR = 16,
    FL_ROLE_LOSS = 256,
};

/* What makes a variable a parameter. Gone in the protobuf form, as in Fluid.
 * A var's own copy lies in the program's arena, with its regularizer and clip;
 * only a regularizer's `user` is borrowed. */
typedef struct fl_param_info {
    bool trainable;
    float learning_rate;               /* multiplies the optimiser's */
    const fl_regularizer *regularizer; /* NULL: the optimiser's */
    const fl_clip *clip;
    bool do_model_average;
} fl_param_info;

/* A variable as a program describes it. */
struct fl_var {
    const char *name;
    fl_kind kind; /* FL_LOD_TENSOR unless said */
    fl_dtype dtype;
    fl_shape shape;
    int lod_level;
    bool persistable;
    bool stop_gradient;
    bool is_data;
    const fl_param_info *param; /* NULL: not a parameter */
    const fl_clip *error_clip;
    /* Which optional fields are written: those that stood in the file it
     * came from, so that it is written back byte for byte; else all. */
    bool had_lod_level, had_persistable, had_tensor;
    struct fl_block *block;
};

typedef struct fl_op {
    fl_desc desc; /* change it through fl_op_set_*, which keep the rules */
    const fl_op_def *def;
    bool had_is_target, is_target; /* as in the file */
    struct fl_block *block;
} fl_op;

typedef FL_VEC(fl_op *) fl_ops;

typedef struct fl_block {
    struct fl_program *program;
    int idx, parent;  /* parent -1: the global block */
    int forward;      /* the block that this is the gradient of, or -1 */
    bool had_forward; /* as in the file */
    fl_ops ops;
    fl_map vars; /* name -> fl_var, in order of creation */
} fl_block;

/* Thread: one at a time; immutable while plans of it run. */
struct fl_program {
    const fl_registry *registry; /* borrowed: outlives the program */
    fl_arena *arena;
    FL_VEC(fl_block *) blocks;
    uint64_t uid;     /* no two programs of a process share one */
    uint64_t version; /* counts changes */
    int64_t random_seed;
    /* Of the file: the optional message, the number in it. */
    bool had_version, had_version_number;
    int64_t file_version;
};

/* --- program --- */

fl_program *fl_program_new(const fl_registry *r); /* with a global block */
fl_block *fl_program_block(const fl_program *p, int i);
fl_block *fl_program_add_block(fl_program *p, int parent);

/* A new program with only what `targets` (names in the global block) need,
 * sub-blocks included. ENOENT names a target that nothing produces. */
fl_err fl_program_prune(const fl_program *p, int n, const char *const *targets,
                        fl_program **out) FL_MUST_CHECK;

/* dst becomes what src is; src is left empty and is the caller's to free.
 * Pointers into dst's blocks, ops and vars end; dst itself stays. */
void fl_program_take(fl_program *dst, fl_program *src);

/* --- vars --- */

/* A var of that name in this block: new, or the old one if its kind, dtype,
 * shape, LoD level and persistability agree (EINVAL otherwise). `like` holds
 * the fields; its name is copied. */
fl_err fl_block_add_var(fl_block *b, const fl_var *like,
                        fl_var **out) FL_MUST_CHECK;
/* A copy, and of all that it points to, in the arena. */
fl_param_info *fl_param_info_dup(fl_arena *a, const fl_param_info *from);
fl_clip *fl_clip_dup(fl_arena *a, const fl_clip *from);    /* NULL gives NULL */
fl_var *fl_block_var(const fl_block *b, const char *name); /* here; or NULL */
/* Here, in the block that this is the gradient of, or so in the parents. */
fl_var *fl_block_find(const fl_block *b, const char *name);
fl_err fl_block_get(const fl_block *b, const char *name,
                    fl_var **out) FL_MUST_CHECK; /* find, with a sentence */
bool fl_block_remove_var(fl_block *b, const char *name);
/* In this block's vars and ops, and in the ops of its sub-blocks. */
fl_err fl_block_rename_var(fl_block *b, const char *from,
                           const char *to) FL_MUST_CHECK;
void fl_var_touch(fl_var *v); /* after a change of a field: counts version */

/* --- ops --- */

/* A copy of `desc` enters at place `at` (-1: the end). It is checked against
 * its table (names, attribute types; FL_EINVAL, FL_ENOENT), and its outputs'
 * shapes, dtypes, kinds and LoD levels are inferred into their vars. Outputs
 * without a var get one. Nothing changes on failure. */
fl_err fl_block_insert_op(fl_block *b, int64_t at, const fl_desc *desc,
                          fl_op **out) FL_MUST_CHECK;
fl_err fl_block_append_op(fl_block *b, const fl_desc *desc,
                          fl_op **out) FL_MUST_CHECK;
void fl_block_remove_op(fl_block *b, int64_t at);
fl_err fl_op_set_attr(fl_op *op, const fl_attr *value) FL_MUST_CHECK;
void fl_op_rename_in(fl_op *op, const char *from, const char *to);
void fl_op_rename_out(fl_op *op, const char *from, const char *to);
fl_err fl_op_infer(fl_op *op) FL_MUST_CHECK; /* shapes again */
int fl_op_role(const fl_op *op); /* 0 where the attribute is absent */

/* --- whole programs --- */

/* Every rule that holds between ops, vars and blocks; EINVAL says which is
 * broken and where: "op 3 \"mul\" in block 0 reads \"x\", which no var ..." */
fl_err fl_program_verify(const fl_program *p) FL_MUST_CHECK;

/* fl_program_text (fluid.h) holds all of the program but regularisers, clips
 * and which optional fields its file had; text.h shows the form. The brief one
 * leaves out attributes that are their table's default, op_role=0,
 * op_namescope and op_callstack. Own: the caller's, fl_mem_free. */
char *fl_program_brief(const fl_program *p);
/* Either text read back. Ops are checked against their tables; shapes stand as
 * written. EINVAL names line and column and what was expected there. */
fl_err fl_program_parse(const fl_registry *r, const char *text,
                        fl_program **out) FL_MUST_CHECK;

/* Paddle's ProgramDesc. Limits are checked before anything is allocated;
 * `name` is the file, for sentences. */
fl_err fl_program_encode(const fl_program *p, void **bytes,
                         size_t *n) FL_MUST_CHECK; /* bytes: fl_mem_free */
fl_err fl_program_decode(const fl_registry *r, const char *name,
                         const void *bytes, size_t n,
                         fl_program **out) FL_MUST_CHECK;

#endif
