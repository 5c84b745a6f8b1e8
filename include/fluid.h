/* SPDX-License-Identifier: Apache-2.0 */
/* fluid.h - build a program, differentiate it, run it.
 *
 *     #include <fluid.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         fl_engine *e = fl_engine_new();
 *         fl_net *n = fl_net_new(e);
 *         fl_var *x = FL_LAYER(n, "fill_constant", {"shape", .i = 3},
 *                              {"dtype", .i = FL_F32}, {"value", .f = 2});
 *         fl_fetch sum = {fl_var_name(FL_LAYER(n, "sum", {"x", .var = x}))};
 *         fl_exe *exe = fl_exe_new(e, NULL);
 *         if (fl_exe_run(exe, fl_net_main(n), fl_scope_new(), 0, 0, 1, &sum))
 *             return fprintf(stderr, "%s\n", fl_errmsg());
 *         return printf("%g\n", *(float *)sum.tensor.data) < 0;
 *     }
 *
 * (README.md has one that trains and cleans up behind itself.)
 *
 * Handles are opaque. A call that can fail returns fl_err, and fl_errmsg()
 * then holds one sentence for the user. In option structs zero is default.
 * Compiles as C11 and as C++. */
#ifndef FL_FLUID_H
#define FL_FLUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Errors ------------------------------------------------------------ */

typedef enum fl_err {
    FL_OK,
    FL_EINVAL,   /* an argument is wrong */
    FL_ENOENT,   /* no such variable, op or file */
    FL_ESHAPE,   /* shapes or types do not fit */
    FL_EIO,      /* a file or socket failed */
    FL_EPROTO,   /* bytes from outside that we cannot accept */
    FL_ETIMEOUT, /* the deadline passed */
    FL_ENOMEM,   /* the memory that the data asks for is not to be had */
    FL_EINTR,    /* whoever asked for it wants it no more */
    FL_ETYPE,    /* a dtype that this cannot be done with */
} fl_err;

const char *fl_errmsg(void); /* last failure on this thread; never NULL */

const char *fl_version(void);
void fl_free(void *p); /* text and bytes that a call gave you */

/* Which of `names` (NULL ends them) was meant by a misspelt `name`; NULL: none
 * is near. */
const char *fl_nearest(const char *name, const char *const *names);

/* What all else hangs on: the tables, the files, the source of seeds. Two
 * engines of one process know nothing of each other. Ends last. */
typedef struct fl_engine fl_engine;
fl_engine *fl_engine_new(void);
void fl_engine_free(fl_engine *e);

/* --- Values ------------------------------------------------------------ */

/* The numbers are those of Paddle's files and programs. */
typedef enum fl_dtype {
    FL_BOOL = 0,
    FL_I16 = 1,
    FL_I32 = 2,
    FL_I64 = 3,
    FL_F16 = 4, /* storage only: no kernel computes in it */
    FL_F32 = 5,
    FL_F64 = 6,
    FL_U8 = 20,
    FL_I8 = 21,
} fl_dtype;

enum {
    FL_MAX_RANK = 9,
    FL_MAX_LOD = 4,
};

typedef struct fl_shape {
    int rank;
    int64_t dim[FL_MAX_RANK]; /* -1 = not known before the run */
} fl_shape;

typedef struct fl_buf fl_buf; /* counted memory */

/* Level of detail: how rows group into sequences. Level 0 is the outermost;
 * off[l] has n[l] offsets, the first 0; the last level counts rows. */
typedef struct fl_lod {
    int levels;
    int64_t n[FL_MAX_LOD];
    const int64_t *off[FL_MAX_LOD];
    fl_buf *buf; /* owns what off points to; NULL: the caller does */
} fl_lod;

/* A tensor is a small value. With buf it owns a share of counted memory and
 * ends with fl_tensor_fini; without, data belongs to the caller. */
typedef struct fl_tensor {
    fl_dtype dtype;
    fl_shape shape;
    fl_lod lod;
    void *data; /* row-major; NULL: no memory yet */
    fl_buf *buf;
} fl_tensor;

size_t fl_dtype_size(fl_dtype t);      /* bytes of an element; 0: unknown */
const char *fl_dtype_name(fl_dtype t); /* "f32"; "?" if unknown */
bool fl_dtype_find(const char *name, fl_dtype *t); /* "f32" or "float32" */

/* A tensor over your memory, and the end of one that owns some. */
fl_tensor fl_tensor_view(fl_dtype dtype, const fl_shape *shape,
                         const void *data);
void fl_tensor_fini(fl_tensor *t); /* t is empty (no memory) again */

/* The given dtype and shape, contents undefined. Keeps its memory when that is
 * its own alone and large enough: the steady state allocates nothing. The LoD
 * is dropped. Err: EINVAL, ENOMEM. */
fl_err fl_tensor_resize(fl_tensor *t, fl_dtype dtype, const fl_shape *shape);

/* dst shares the memory of src (or copies a borrowed one), LoD too. */
fl_err fl_tensor_ref(fl_tensor *dst, const fl_tensor *src);

/* dst has its own copy, LoD too. */
fl_err fl_tensor_copy(fl_tensor *dst, const fl_tensor *src);

/* Elements of `from` converted to `to`, as C converts. Both have n. Where C
 * says nothing (a float beyond int64) the nearest int64 is taken, NaN is 0. */
fl_err fl_convert(int64_t n, fl_dtype from, const void *src, fl_dtype to,
                  void *dst);

/* Copy offsets; keeps memory when its own alone and large enough. */
fl_err fl_lod_copy(fl_lod *dst, const fl_lod *src);

/* From sequence lengths (counts), per level. */
fl_err fl_lod_from_lengths(fl_lod *dst, int levels, const int64_t *n,
                           const int64_t *const *length);

/* EINVAL unless offsets start at 0, never fall, each level's last offset is
 * the number of sequences of the next, and the last level's is `rows`
 * (-1: not compared). */
fl_err fl_lod_check(const fl_lod *l, int64_t rows);

/* What a variable may hold. The numbers are those of Paddle's VarType. */
typedef enum fl_kind {
    FL_LOD_TENSOR = 7,
    FL_SELECTED_ROWS = 8,
    FL_FEED_MINIBATCH = 9,
    FL_FETCH_LIST = 10,
    FL_STEP_SCOPES = 11,
    FL_LOD_RANK_TABLE = 12,
    FL_LOD_TENSOR_ARRAY = 13,
    FL_PLACE_LIST = 14,
    FL_READER = 15,
    FL_RAW = 17,
    FL_TUPLE = 18,
} fl_kind;

/* Some rows of a tall matrix: row i of value belongs to row rows[i] of
 * `height`. Rows may repeat (they add up) unless merged. */
typedef struct fl_rows {
    int64_t height;
    int64_t n;       /* rows listed */
    fl_tensor index; /* i64 [n] */
    fl_tensor value; /* [n, ...] */
} fl_rows;

/* n rows of `dtype` [n, width dims of shape from 1 on]; shape.dim[0] is the
 * height. Contents undefined; memory is kept when it suffices. */
fl_err fl_rows_resize(fl_rows *r, fl_dtype dtype, const fl_shape *shape,
                      int64_t n);

/* What a variable holds at run time: in a scope, or one of your own. */
typedef struct fl_value fl_value;
fl_value *fl_value_new(void);
void fl_value_free(fl_value *v);          /* not what a scope holds */
fl_kind fl_value_kind(const fl_value *v); /* 0: nothing yet */
/* A tensor whose elements servers hold: it has a shape and no memory. */
bool fl_value_is_absent(const fl_value *v);

/* What it holds, borrowed; an empty value becomes a tensor, or rows. EINVAL:
 * it holds something else. */
fl_err fl_value_tensor(fl_value *v, fl_tensor **out);
fl_err fl_value_rows(fl_value *v, fl_rows **out);
/* The tensors of an array, borrowed. */
fl_err fl_value_array(fl_value *v, int64_t *n, fl_tensor **out);

/* --- Networks ---------------------------------------------------------- */

typedef struct fl_program fl_program; /* the graph; owns ops, vars and names */
typedef struct fl_var fl_var;         /* a variable of a program */
typedef struct fl_net fl_net; /* under construction: a main and a startup
                                 program, and the names given so far */

/* A net with two empty programs of its own. */
fl_net *fl_net_new(fl_engine *e);
void fl_net_free(fl_net *n); /* the programs too; not their clones */
fl_program *fl_net_main(fl_net *n);
fl_program *fl_net_startup(fl_net *n); /* run it once: parameters start */
/* Of the parameters that are added from now on; 0: other numbers each time. */
void fl_net_seed(fl_net *n, int64_t seed);
/* The first failure, which fl_errmsg() then tells again; FL_OK: none. */
fl_err fl_net_error(const fl_net *n);

/* How a parameter starts. Kinds: "constant" (a), "uniform" (a to b), "normal"
 * and "truncated_normal" (mean a, deviation b), "xavier", "msra", "bilinear",
 * "array". */
typedef struct fl_init fl_init;
struct fl_init {
    const char *kind;
    double a, b;
    bool gaussian;          /* xavier, msra: normal, not uniform */
    double fan_in, fan_out; /* 0: from the shape */
    int64_t seed;           /* 0: the startup program's random seed */
    const fl_tensor *array; /* "array" */
    /* A kind of your own: emit what you like into the startup program. */
    fl_err (*emit)(const fl_init *self, fl_net *n, fl_var *v);
    void *user;
};

/* What is added to a gradient: "l1" or "l2" decay. */
typedef struct fl_regularizer fl_regularizer;
struct fl_regularizer {
    const char *kind;
    float coeff;
    /* A kind of your own: *term is added to the gradient. */
    fl_err (*emit)(const fl_regularizer *self, fl_net *n, fl_var *param,
                   fl_var *grad, fl_var **term);
    void *user;
};

/* How gradients are held back: "value" (min to max), "norm", "global_norm"
 * (max is the norm). */
typedef struct fl_clip {
    const char *kind;
    float max, min;
    const char *group; /* global_norm; NULL reads as "default_group" */
    void *user;        /* the caller's own; copied along */
} fl_clip;

typedef struct fl_param_attr {
    const char *name; /* NULL: made from the layer's */
    const fl_init *init;
    float learning_rate; /* multiplies the optimiser's; 0 reads as 1 */
    bool frozen;         /* not trained */
    const fl_regularizer *regularizer;
    const fl_clip *clip;
    bool no_average; /* left out of model averages */
    bool none;       /* no parameter at all (a layer without bias) */
    /* Kept as a direction NAME_v and a length NAME_g, which are trained: one
     * length for each index of a dimension, or of all (dimension -1). */
    bool weight_norm;
    int weight_norm_dim;
    bool summary; /* its gradient is added to it, whatever the optimiser */
} fl_param_attr;

/* One argument of a layer. The layer's table says which member is read; n is
 * the length where it is a list (a list of one may be given as a single, an
 * empty one has n -1). A pointer that is NULL is as if not given. */
typedef struct fl_arg {
    const char *name; /* NULL ends the list */
    int n;
    union {
        int64_t i; /* also a dtype */
        double f;
        bool b;
        const char *s;
        fl_var *var;
        fl_var *const *vars;
        const int64_t *ints;
        const double *floats;
        const char *const *strs;
        const fl_param_attr *attr; /* n > 0: that many in a row */
        const fl_init *init;
        const fl_regularizer *regularizer;
        const fl_clip *clip;
        const fl_tensor *tensor;
    };
} fl_arg;

/* Add a layer by name, e.g. "fc": its first output. NULL after a failure: the
 * net keeps the first one (fl_net_error) and does nothing more, so that a
 * network is written without a check per line. args ends with {0}. */
fl_var *fl_layer(fl_net *n, const char *name, const fl_arg *args);

/* The same with every output: how many there are; at most `max` are stored.
 * -1 after a failure. */
int fl_layer_all(fl_net *n, const char *name, const fl_arg *args, int max,
                 fl_var **outs);

#define FL_LAYER(net, name, ...)                                               \
    fl_layer(net, name, (const fl_arg[]){__VA_ARGS__, {0}})

/* x op y, or with a number when y is NULL. op is written as in Python: + - * /
 * ** // % == != < <= > >=. Reversed: the right operand comes first (2.0 - x).
 * Results are named tmp_0, tmp_1 ... */
fl_err fl_var_math(fl_net *n, const char *op, fl_var *x, fl_var *y,
                   double number, bool reversed, fl_var **out);

const char *fl_var_name(const fl_var *v);
fl_dtype fl_var_dtype(const fl_var *v);
const fl_shape *fl_var_shape(const fl_var *v);

/* Append gradients of `loss` and the updates of an optimiser, e.g. "sgd" with
 * {"learning_rate", .f = 0.01}. A failure stays on the net as a layer's. */
fl_err fl_minimize(fl_net *n, fl_var *loss, const char *optimizer,
                   const fl_arg *args);

/* --- Programs ---------------------------------------------------------- */

/* for_test: is_test becomes true wherever an op has that attribute. */
fl_program *fl_program_clone(const fl_program *p, bool for_test);
void fl_program_free(fl_program *p);
char *fl_program_text(const fl_program *p); /* readable; fl_free */

/* Paddle's file (a `__model__`). */
fl_err fl_program_save(fl_engine *e, const fl_program *p, const char *path);
fl_err fl_program_load(fl_engine *e, const char *path, fl_program **out);

/* --- Inside programs --------------------------------------------------- */

/* A program is blocks; a block is variables and operators. All of them, their
 * names and what is read from them here live until the program ends, removed
 * ones too; only fl_program_take ends them before.
 * Thread: one at a time for a program; none changes while it runs. */
typedef struct fl_block fl_block;
typedef struct fl_op fl_op;
typedef struct fl_arena fl_arena; /* memory that ends all at once */

fl_program *fl_program_new(fl_engine *e);         /* with a global block */
uint64_t fl_program_version(const fl_program *p); /* counts changes */
int64_t fl_program_seed(const fl_program *p);
void fl_program_set_seed(fl_program *p, int64_t seed);
fl_block *fl_program_block(const fl_program *p, int i); /* NULL: none */
fl_block *fl_program_add_block(fl_program *p, int parent);

/* A new program with only what `targets` (names in the global block) need,
 * sub-blocks included. ENOENT names a target that nothing produces. */
fl_err fl_program_prune(const fl_program *p, int n, const char *const *targets,
                        fl_program **out);

/* The program that computes targets from feeds: pruned, for test, with feed
 * and fetch ops. Own: *out is new. */
fl_err fl_inference_program(const fl_program *p, int n_feeds,
                            const char *const *feeds, int n_targets,
                            const char *const *targets, fl_program **out);

/* dst becomes what src is; src is left empty and is the caller's to free.
 * Pointers into dst's blocks, ops and vars end with src; dst itself stays. */
void fl_program_take(fl_program *dst, fl_program *src);

/* Every rule that holds between ops, vars and blocks; EINVAL says which is
 * broken and where: "op 3 \"mul\" in block 0 reads \"x\", which no var ..." */
fl_err fl_program_verify(const fl_program *p);

/* Paddle's ProgramDesc. Own: bytes, fl_free. */
fl_err fl_program_encode(const fl_program *p, void **bytes, size_t *n);
/* Read back; `name` is the file, for sentences. Bytes are not trusted. */
fl_err fl_program_read(fl_engine *e, const char *name, const void *bytes,
                       size_t n, fl_program **out);

/* The same messages in protobuf's text format. fl_free. */
char *fl_program_proto(const fl_program *p);
char *fl_block_proto(const fl_block *b);
char *fl_op_proto(const fl_op *op);
char *fl_var_proto(const fl_var *v);

/* - blocks - */

typedef struct fl_block_info {
    fl_program *program;
    int idx, parent; /* parent -1: the global block */
    int forward;     /* the block that this is the gradient of, or -1 */
    int64_t n_ops, n_vars;
} fl_block_info;

fl_block_info fl_block_look(const fl_block *b);
void fl_block_set_forward(fl_block *b, int forward);

/* What makes a variable a parameter. Gone in the protobuf form, as in Fluid. A
 * program keeps copies; only what `user` points to is borrowed. */
typedef struct fl_param_info {
    bool trainable;
    float learning_rate;               /* multiplies the optimiser's */
    const fl_regularizer *regularizer; /* NULL: the optimiser's */
    const fl_clip *clip;
    bool do_model_average;
    bool summary; /* no weight: a sum over data that its gradient adds to */
} fl_param_info;

typedef struct fl_var_info {
    const char *name;
    fl_block *block; /* not read where one is set */
    fl_kind kind;    /* 0 reads as FL_LOD_TENSOR */
    fl_dtype dtype;
    fl_shape shape;
    int lod_level;
    bool persistable, stop_gradient, is_data;
    const fl_param_info *param; /* NULL: not a parameter */
    const fl_clip *error_clip;
} fl_var_info;

fl_var_info fl_var_look(const fl_var *v);
void fl_var_set(fl_var *v, const fl_var_info *to); /* all but its name */

/* A var of that name in this block: new, or the old one if its kind, dtype,
 * shape, LoD level and persistability agree (EINVAL otherwise). */
fl_err fl_block_declare(fl_block *b, const fl_var_info *like, fl_var **out);
/* In order of creation; how many there are; at most `max` are stored. */
int64_t fl_block_vars(const fl_block *b, int64_t max, fl_var **out);
fl_var *fl_block_var(const fl_block *b, const char *name); /* here; or NULL */
/* Here, in the block that this is the gradient of, or so in the parents. */
fl_var *fl_block_find(const fl_block *b, const char *name);
bool fl_block_remove_var(fl_block *b, const char *name);
/* In this block's vars and ops, and in the ops of its sub-blocks. */
fl_err fl_block_rename_var(fl_block *b, const char *from, const char *to);

/* - operators - */

/* The numbers are those of Paddle's AttrType. */
typedef enum fl_attr_type {
    FL_ATTR_INT,
    FL_ATTR_FLOAT,
    FL_ATTR_STRING,
    FL_ATTR_INTS,
    FL_ATTR_FLOATS,
    FL_ATTR_STRINGS,
    FL_ATTR_BOOL,
    FL_ATTR_BOOLS,
    FL_ATTR_BLOCK, /* i is the block's index */
    FL_ATTR_LONG,
    FL_ATTR_BLOCKS,
    FL_ATTR_LONGS,
} fl_attr_type;

/* A default in an operator's table, or a value in a program. */
typedef struct fl_attr {
    const char *name; /* NULL ends a table */
    fl_attr_type type;
    bool required; /* in an operator's table: there is no default */
    bool ours;     /* there, too: not Fluid's, so only where it was set */
    int n;         /* length of a list */
    union {
        int64_t i; /* INT, LONG, BLOCK */
        float f;
        bool b;
        const char *s;        /* STRING; NULL reads as "" */
        const int64_t *longs; /* INTS, LONGS, BLOCKS */
        const float *floats;
        const char *const *strings;
        const bool *bools;
    };
} fl_attr;

const char *fl_attr_type_name(fl_attr_type t); /* "int", "float", "longs" */

typedef struct fl_args {
    const char *slot;
    int n;
    const char **name; /* "@EMPTY@": not there */
} fl_args;

/* An operator as written in a program. Slots and attributes keep the order in
 * which they were given. Yours needs no arena: it is copied. */
typedef struct fl_desc {
    const char *type;
    int n_in, n_out, n_attr;
    fl_args *in, *out;
    fl_attr *attr;
    fl_arena *arena;
} fl_desc;

/* A copy of `desc` enters at place `at` (-1: the end). It is checked against
 * its table (names, attribute types; EINVAL, ENOENT), and its outputs' shapes,
 * dtypes, kinds and LoD levels are inferred into their vars (ESHAPE). Outputs
 * without a var get one. Nothing changes on failure. out may be NULL. */
fl_err fl_block_insert_op(fl_block *b, int64_t at, const fl_desc *desc,
                          fl_op **out);
fl_op *fl_block_op(const fl_block *b, int64_t i); /* NULL: none */
void fl_block_remove_op(fl_block *b, int64_t at);

const fl_desc *fl_op_look(const fl_op *op); /* as it is now */
fl_block *fl_op_block(const fl_op *op);
int64_t fl_op_index(const fl_op *op); /* in its block; -1: removed */
fl_err fl_op_set_attr(fl_op *op, const fl_attr *value);
bool fl_op_remove_attr(fl_op *op, const char *name);
void fl_op_rename_in(fl_op *op, const char *from, const char *to);
void fl_op_rename_out(fl_op *op, const char *from, const char *to);
fl_err fl_op_infer(fl_op *op); /* shapes again */

/* --- Tables ------------------------------------------------------------ */

/* Slot flags. */
enum {
    FL_MANY = 1,          /* takes a list */
    FL_OPTIONAL = 2,      /* may be absent; every other slot is there */
    FL_NOGRAD = 4,        /* no gradient flows into it */
    FL_INTERMEDIATE = 8,  /* an output that only the gradient reads */
    FL_VIEW = 16,         /* an output that may share an input's memory: the
                           * kernel makes it, nobody resizes it */
    FL_SHAPES = 32,       /* an input whose elements decide an output's shape */
    FL_UNREAD = 64,       /* an input of which type and shape are read alone */
    FL_GRAD_UNREAD = 128, /* the same of the gradient, which lists it */
    FL_FILLS = 256,       /* an output that stays selected rows where it holds
                           * some: the kernel fills their values */
    FL_TOKEN = 512,       /* an output that orders ops and is not written */
};

typedef struct fl_slot {
    const char *name; /* NULL ends a table */
    unsigned flags;
} fl_slot;

typedef struct fl_op_info {
    const char *type;
    int n_in, n_out, n_attr;
    const fl_slot *in, *out;
    const fl_attr *attr;
    bool differentiable;
} fl_op_info;

/* Which member of fl_arg is read. Where there are two, n tells: 0 is the
 * first, 1 (or more) the second. */
typedef enum fl_arg_type {
    FL_ARG_VAR,
    FL_ARG_VARS,
    FL_ARG_INT,
    FL_ARG_FLOAT,
    FL_ARG_BOOL,
    FL_ARG_STR,
    FL_ARG_DTYPE, /* i; its default is a name: "'float32'" */
    FL_ARG_INTS,
    FL_ARG_FLOATS,
    FL_ARG_STRS,
    FL_ARG_PARAM, /* attr; n > 0: one for each input */
    FL_ARG_INIT,
    FL_ARG_TENSOR,
    FL_ARG_REGULARIZER,
    FL_ARG_CLIP,
    FL_ARG_FLOAT_OR_VAR,
    FL_ARG_INT_OR_VAR,
    FL_ARG_VAR_OR_TENSOR,
    FL_ARG_INT_OR_INTS,
} fl_arg_type;

const char *fl_arg_type_name(fl_arg_type t); /* "variable", "list of ints" */

typedef struct fl_arg_def {
    const char *name; /* NULL ends a table */
    fl_arg_type type;
    const char *value; /* the default: "1", "0.5", "True", "'relu'", "None";
                          NULL: required */
    const char *doc;   /* what it means; never NULL in fl_layer_table and
                          fl_optimizer_table */
} fl_arg_def;

/* A layer or an optimiser as a function with arguments. */
typedef struct fl_signature {
    const char *name, *doc;
    const char *returns; /* NULL: one variable; "a, b": several, by name;
                            "[a]": the rest as a list */
    int n_args;
    const fl_arg_def *args;
} fl_signature;

/* How many rows there are; they live with the engine. */
int fl_op_table(const fl_engine *e, const fl_op_info **out);
int fl_layer_table(const fl_engine *e, const fl_signature **out);
int fl_optimizer_table(const fl_engine *e, const fl_signature **out);

/* --- Building over programs of your own -------------------------------- */

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

/* Counters by key: "fc" gives fc_0, then fc_1. */
typedef struct fl_names fl_names;
fl_names *fl_names_new(const char *prefix); /* NULL: none */
void fl_names_free(fl_names *n);
char *fl_names_give(fl_names *n, const char *key); /* fl_free */

/* Where a net appends and what it writes on each op. All is borrowed. */
typedef struct fl_net_state {
    fl_program *main, *startup;
    fl_names *names;
    int block;               /* current block of main */
    int role;                /* op_role */
    const char *role_var[2]; /* op_role_var (param, grad); NULL: none */
    const char *scope;       /* op_namescope; NULL reads as "/" */
    int n_callstack;         /* op_callstack: who made the op; 0: none */
    const char *const *callstack;
} fl_net_state;

/* Own: the net is new, the programs and names stay yours. */
fl_net *fl_net_over(fl_program *main, fl_program *startup, fl_names *names);
fl_net_state fl_net_look(const fl_net *n);
void fl_net_set(fl_net *n, const fl_net_state *s);

/* fl_block_insert_op with what the net writes on ops. */
fl_err fl_net_add_op(fl_net *n, fl_block *b, int64_t at, const fl_desc *desc,
                     fl_op **out);

/* A parameter in the global block of main and of startup with its start op.
 * attr NULL is the default; `layer` gives the name: generate(layer + ".w").
 * init_default NULL: Xavier for weights, 0 for biases. An existing parameter
 * of that name is shared if dtype and shape agree. */
fl_err fl_net_param(fl_net *n, const fl_param_attr *attr, const char *layer,
                    bool bias, fl_dtype dtype, const fl_shape *shape,
                    const fl_init *init_default, fl_var **out);

/* Declare `v` in the startup program, persistable, and put the op that starts
 * it there, in front of the others (Fluid prepends). A variable that an op of
 * startup writes already is left as it is. */
fl_err fl_init_emit(const fl_init *i, fl_net *n, fl_var *v);

/* Cases are tried in order: the first whose condition holds runs. Each is a
 * conditional_block over a sub-block; conditions are chained by logical_not
 * and logical_and.
 *
 *     fl_switch s = {0};
 *     FL_TRY(fl_switch_case(n, &s, condition));  // NULL: the default
 *     ... append to the net ...
 *     FL_TRY(fl_switch_end(n, &s)); */
typedef struct fl_switch {
    const char *name;   /* instance; made by the first case */
    fl_var *not_before; /* no case so far held */
    fl_var *cond;       /* of the case that is open */
    int parent;
} fl_switch;

fl_err fl_switch_case(fl_net *n, fl_switch *s, fl_var *cond);
fl_err fl_switch_end(fl_net *n, fl_switch *s);

/* - gradients - */

typedef struct fl_param_grad {
    fl_var *param, *grad; /* grad may be NULL */
} fl_param_grad;

typedef struct fl_param_grads {
    fl_param_grad *at; /* the caller's, fl_free */
    int64_t n, cap;
} fl_param_grads;

typedef struct fl_ops {
    fl_op **at; /* the caller's, fl_free */
    int64_t n, cap;
} fl_ops;

typedef struct fl_backward_opts {
    int n_params; /* 0: every trainable parameter */
    const char *const *params;
    int n_no_grad;
    const char *const *no_grad;
} fl_backward_opts;

/* Append the gradient of `loss` to main. Fluid's names and accumulation. */
fl_err fl_backward(fl_net *n, fl_var *loss, const fl_backward_opts *opts,
                   fl_param_grads *out);

/* Gradients of targets with respect to inputs; grads[i] may come out NULL.
 * target_grads may be NULL (ones). */
fl_err fl_gradients(fl_net *n, int n_targets, fl_var *const *targets,
                    fl_var *const *target_grads, int n_inputs,
                    fl_var *const *inputs, const fl_backward_opts *opts,
                    fl_var **grads);

/* Set the clip of these parameters, or of all (n_params 0). NULL: none. */
fl_err fl_net_set_clip(fl_net *n, const fl_clip *clip, int n_params,
                       const char *const *params);

/* The gradient ops of one op, by themselves: fn gets each in order. A name in
 * no_grad, of a variable, gets no gradient: @EMPTY@ stands in its place. */
fl_err fl_op_grads(const fl_op *op, int n_no_grad, const char *const *no_grad,
                   void (*fn)(void *user, const fl_desc *d), void *user);

/* The two steps between gradients and updates; minimize does both. Gradients in
 * pgs are replaced by what becomes of them. Clip: as each parameter's clip
 * says. Decay: add each parameter's regularizer, or else `other` (or NULL). */
fl_err fl_clip_grads(fl_net *n, fl_param_grads *pgs);
fl_err fl_decay_grads(fl_net *n, const fl_regularizer *other,
                      fl_param_grads *pgs);

/* - optimisers - */

typedef struct fl_optimizer fl_optimizer; /* Thread: as its net */

/* learning_rate is a float, or a variable (n = 1) such as a schedule makes.
 * Own: *out is new; the net outlives it. */
fl_err fl_optimizer_new(fl_net *n, const char *name, const fl_arg *args,
                        fl_optimizer **out);
void fl_optimizer_free(fl_optimizer *o);

/* An optimiser of your own: what it does in place of the table's. Gradients
 * are clipped and decayed by then. */
typedef struct fl_optimizer_hooks {
    fl_err (*begin)(void *user, fl_optimizer *o, const fl_param_grads *pgs);
    fl_err (*update)(void *user, fl_optimizer *o, const fl_param_grad *pg);
    fl_err (*finish)(void *user, fl_optimizer *o, const fl_param_grads *pgs);
    void *user;
} fl_optimizer_hooks;

/* args: learning_rate, regularization, name. */
fl_err fl_optimizer_custom(fl_net *n, const fl_optimizer_hooks *hooks,
                           const fl_arg *args, fl_optimizer **out);

/* Put hooks of yours in place of those an optimiser has, which come back: in
 * yours you may call them, with their `user`. Parameters that are updated come
 * to `begin`, all to `finish`. */
fl_optimizer_hooks fl_optimizer_hook(fl_optimizer *o,
                                     const fl_optimizer_hooks *mine);

/* Gradients of `loss`, then their updates. out (may be NULL): parameters and
 * their raw gradients in order of creation. ops (may be NULL): the ops of the
 * update. */
fl_err fl_optimizer_minimize(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out,
                             fl_ops *ops);

/* The two halves of minimize. Parameters are updated in order of their names;
 * gradients are clipped first, then decay is added. */
fl_err fl_optimizer_backward(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out);
fl_err fl_optimizer_apply_gradients(fl_optimizer *o, const fl_param_grads *pgs,
                                    fl_ops *ops);

/* The learning rate of a parameter: the optimiser's, times the parameter's own
 * where that is not 1. param NULL: the optimiser's; NULL before it is made. */
fl_err fl_optimizer_rate(fl_optimizer *o, const fl_var *param, fl_var **out);

/* A persistable variable `<param>_<kind>_<n>` that starts as `start`; shape
 * NULL: the parameter's. EINVAL if there is one of that kind already. */
fl_err fl_optimizer_accumulator(fl_optimizer *o, const char *kind,
                                const fl_var *param, double start,
                                const fl_shape *shape, fl_var **out);
fl_var *fl_optimizer_get(const fl_optimizer *o, const char *kind,
                         const fl_var *param); /* NULL: none */
/* Calls fn for every accumulator that there is. */
void fl_optimizer_each(const fl_optimizer *o,
                       void (*fn)(void *user, const char *kind,
                                  const char *param, fl_var *v),
                       void *user);

/* --- Running ----------------------------------------------------------- */

typedef struct fl_scope fl_scope; /* names and what they hold */
typedef struct fl_exe fl_exe;     /* runs programs; keeps their plans */

/* Scopes outlive the executors that run on them. */
fl_scope *fl_scope_new(void);
void fl_scope_free(fl_scope *s);

/* A scope finds names in itself, then in its parents. Thread: any; a value
 * belongs to whoever runs on it. */
fl_scope *fl_scope_child(fl_scope *parent); /* ends with its parent */
void fl_scope_drop_kids(fl_scope *s);
fl_value *fl_scope_var(fl_scope *s, const char *name);  /* here; made if new */
fl_value *fl_scope_find(fl_scope *s, const char *name); /* NULL: nowhere */
bool fl_scope_erase(fl_scope *s, const char *name);     /* here */
/* Calls fn for each of its own, in order of creation. */
void fl_scope_each(fl_scope *s,
                   void (*fn)(void *self, const char *name, fl_value *v),
                   void *self);

typedef struct fl_exe_opts {
    bool no_fuse; /* one kernel an op: bits do not depend on the plan */
    bool lenient; /* a fetch that nothing has written comes out empty */
    /* Asked between ops, about every 50 ms of a long run: other than 0 ends
     * the run with FL_EINTR. */
    int (*poll)(void *user);
    void *user;
} fl_exe_opts;

/* The tensor may borrow your memory: it is read before the run returns. */
typedef struct fl_feed {
    const char *name;
    fl_tensor tensor;
} fl_feed;

/* What comes out is yours: memory it has is used again if it suffices. */
typedef struct fl_fetch {
    const char *name;
    fl_tensor tensor;
    fl_rows rows; /* of a variable that holds selected rows */
    fl_kind kind; /* which of the two it was; 0: nothing was written */
} fl_fetch;
void fl_fetch_fini(fl_fetch *f); /* both; the name stays */

/* Run a program once. Persistable variables live in the scope (its root, when
 * they are new there); all others end with the run. The first run of a program
 * compiles it; later ones with the same feed and fetch names do not.
 * Err: EINVAL, ENOENT (a feed is missing, a name unknown), ESHAPE and what the
 * operators say, with "(op 12 "mul" in block 0)". Thread: one at a time for an
 * executor; several executors may share a scope. */
fl_err fl_exe_run(fl_exe *e, const fl_program *p, fl_scope *s, int n_feeds,
                  const fl_feed *feeds, int n_fetches, fl_fetch *fetches);
void fl_exe_free(fl_exe *e);

/* What the gradients of several places become: Fluid's
 * GradientScaleStrategy. */
typedef enum fl_grad_scale {
    FL_GRAD_MEAN, /* the gradient of a loss starts with 1 / places */
    FL_GRAD_SUM,  /* with 1 */
    FL_GRAD_FED,  /* with what is fed as LOSS@GRAD */
} fl_grad_scale;

typedef struct fl_places {
    int n;      /* threads */
    bool apart; /* feeds: n lists of n_feeds, all with the same names */
    fl_grad_scale scale;
} fl_places;

/* The same with each batch on several threads. A feed is cut into slices of as
 * many rows (sequences, with LoD), the last has what is left over; of a batch
 * with fewer rows than places each is a place. Forward and backward ops run on
 * every place, gradients are added up in the order of places (the same bits
 * each time), updates and schedules run once. Of persistable variables that
 * forward ops write (running means) the first place's stay.
 * Fetches are those of all places along axis 0: a mean loss is [n]. What is
 * common to all (parameters, summed gradients) comes n times, but as selected
 * rows once. */
fl_err fl_exe_run_places(fl_exe *e, const fl_places *places,
                         const fl_program *p, fl_scope *s, int n_feeds,
                         const fl_feed *feeds, int n_fetches,
                         fl_fetch *fetches);

fl_exe *fl_exe_new(fl_engine *e, const fl_exe_opts *opts); /* opts: or NULL */

/* Times of operators, by type. On: start anew; off: keep what there is. */
typedef struct fl_profile_row {
    const char *type; /* lives with the executor, until it starts anew */
    int64_t calls, total, max, min; /* nanoseconds */
} fl_profile_row;

void fl_exe_profile(fl_exe *e, bool on);
/* The largest total first; how many there are; at most `max` are stored. */
int fl_exe_profile_rows(const fl_exe *e, int max, fl_profile_row *out);
char *fl_exe_profile_trace(const fl_exe *e); /* for chrome://tracing; fl_free */

/* A variable of a scope: a copy out; a copy in, made if new. */
fl_err fl_scope_get(fl_scope *s, const char *name, fl_tensor *out);
fl_err fl_scope_set(fl_scope *s, const char *name, const fl_tensor *t);

/* --- Many hosts -------------------------------------------------------- */

/* Which server holds which piece of a parameter: Fluid's PSDispatcher. Called
 * once, with the names of all pieces; each gets one of the servers. */
typedef struct fl_dispatcher {
    fl_err (*dispatch)(void *user, int n, const char *const *pieces,
                       const char **endpoints);
    void *user;
} fl_dispatcher;

/* A trainer id: none was given, so the job gives one in order of arrival. */
enum {
    FL_ANY_ID = -1
};

typedef struct fl_transpile_opts {
    const char *pservers;     /* "host:port, host:port"; required */
    int trainers;             /* 0: 1 */
    int trainer_id;           /* a second process with it is turned away */
    bool async;               /* trainers never meet */
    bool half_async;          /* but threads of a trainer do */
    bool no_slices;           /* a parameter stays whole */
    int64_t min_block_size;   /* elements of a slice; 0: 8192 */
    const char *split_method; /* NULL: "RoundRobin"; or "HashName" */
    const fl_dispatcher *dispatcher; /* one of your own; wins */
    bool runtime_split_send_recv;    /* send and recv cut and join */
    bool enable_dc_asgd, geo_sgd_mode;
    int geo_sgd_need_push_nums;
    int n_params; /* those of params_grads, where it was given; 0: all */
    const char *const *params;
    bool sum_gradients; /* of all trainers; else servers take their mean */
    int dense_servers;  /* the first so many hold the parameters with dense
                         * gradients, the others those with sparse ones; 0: all
                         * servers hold both */
    int serial; /* of jobs that are alike in all else and follow each other */
} fl_transpile_opts;

/* A training program cut into what trainers and each server run. */
typedef struct fl_cut fl_cut;

/* Nothing is changed: all programs of the cut are new. No sockets.
 * Own: *cut is new; the engine outlives it. Err: EINVAL, ENOENT. */
fl_err fl_transpile(const fl_program *main, const fl_program *startup,
                    const fl_transpile_opts *opts, fl_cut **cut);
void fl_cut_free(fl_cut *c); /* with its programs */

/* The cut's own. ENOENT: no such endpoint, and which there are. */
fl_program *fl_cut_trainer(const fl_cut *c);
fl_program *fl_cut_trainer_startup(const fl_cut *c);
fl_err fl_cut_server(const fl_cut *c, const char *endpoint,
                     fl_program **program, fl_program **startup);

/* The endpoints of its servers, in their order. Lives with the cut. */
int fl_cut_endpoints(const fl_cut *c, const char *const **out);

/* A training program for ranks that average gradients without servers. */
typedef struct fl_collective_opts {
    const char *trainers; /* "host:port, host:port" of all ranks; required */
    int rank;             /* of this process: its place in trainers */
    const char *endpoint; /* its own, to be compared; NULL: it is not */
    /* NULL or "nccl2": only startup changes, which joins the ranks, and
     * fl_collective_grads makes what runs; "grad_allreduce": main sums its
     * gradients over all ranks; "local_sgd": ranks update alone, and main
     * averages what they have changed. */
    const char *mode;
    int rings;         /* that share the work; 0: 1 in nccl2, else 2 */
    bool hierarchical; /* nccl2: written into the program, without effect */
    int inter_nranks;  /* the same */
} fl_collective_opts;

/* Nothing is changed. Own: both programs are new. Err: EINVAL. */
fl_err fl_collective(const fl_program *main, const fl_program *startup,
                     const fl_collective_opts *opts, fl_program **main_out,
                     fl_program **startup_out);
/* main with gradients that become their mean (or sum) over so many ranks, which
 * ring 0 connects. Own: *out is new; NULL: main has no gradients. */
fl_err fl_collective_grads(const fl_program *main, int ranks,
                           fl_grad_scale scale, fl_program **out);
/* What gives all ranks of ring 0 the values of rank 0 of all that main keeps
 * from run to run. Own: *out is new. */
fl_err fl_collective_broadcast(const fl_program *main, fl_program **out);

/* How long to wait, and whether to go on. */
typedef struct fl_wait_opts {
    int64_t limit_ms; /* 0: FLUID_START, or ten minutes */
    /* Asked some 50 times a second: other than 0 ends it with FL_EINTR. */
    int (*poll)(void *user);
    void *user;
} fl_wait_opts;

/* Until a parameter server answers at every endpoint. After a second, and then
 * every five, a line on stderr counts who is there. Err: EINVAL (no endpoint),
 * ETIMEOUT, EINTR. Thread: any. */
fl_err fl_wait_ports(int n, const char *const *endpoints,
                     const fl_wait_opts *opts); /* opts: or NULL */

/* Servers that run without a program of their own (fl_serve) get theirs from
 * trainer 0, and with it the values that its scope has for all parameters.
 * Other trainers wait until that is done. To be called before programs of the
 * cut run. Err: EINVAL (a server has another job or refuses the program, and
 * why), ETIMEOUT, EINTR. */
fl_err fl_cut_set_up(const fl_cut *c, fl_scope *scope,
                     const fl_wait_opts *opts); /* opts: or NULL */

/* Copy the parameters of p, the program of a trainer, from the servers into a
 * scope: also those that the trainer looks up row by row. */
fl_err fl_params_fetch(fl_engine *e, const fl_program *p, fl_scope *scope,
                       const fl_wait_opts *opts); /* opts: or NULL */

/* Parameter servers without a program: one on each port. */
typedef struct fl_serve_opts {
    int port;         /* the first port */
    int ports;        /* for parameters with dense gradients; at least 1 */
    int sparse_ports; /* for parameters with sparse gradients; they follow */
    int trainers;     /* of a job; at least 1 */
    const char *nics; /* network devices, with commas; NULL or "": the address
                         that PADDLE_CURRENT_IP or POD_IP has, else any */
    bool keep;        /* wait for another job when one has ended */
    const char *durability; /* "memory", "process" or "auto"; NULL or "": as
                               FLUID_DURABILITY says, or else "auto" */
} fl_serve_opts;

/* Returns when the job has ended, or at SIGTERM and SIGINT. Err: EINVAL (an
 * option is wrong, a device does not exist); as the job's. */
fl_err fl_serve(fl_engine *e, const fl_serve_opts *opts);

/* This process has no more to do for the jobs that programs of the engine have
 * joined as trainers: it has completed (code 0) or failed, and why. Returns
 * when the servers know. Afterwards those programs send and receive no more.
 * fl_engine_free completes what was not left. limit_ms 0: as long as servers
 * may be silent. Err: EIO (a job failed, and how), ETIMEOUT, EINTR. */
fl_err fl_engine_leave(fl_engine *e, int code, const char *why,
                       const fl_wait_opts *opts); /* opts: or NULL */

/* An asynchronous trainer: from now on gradients that p sends gather, are added
 * up and travel beside the work, as FLAGS_communicator_* say; recv takes what
 * has come meanwhile. p is what fl_cut_trainer gave. Err: EINVAL. */
fl_err fl_communicator_start(fl_engine *e, const fl_program *p);
/* All that has gathered is applied; then send and recv are as before. Leaving
 * does it, too. Not while p runs. limit_ms is not read. */
fl_err fl_communicator_stop(fl_engine *e, const fl_program *p,
                            const fl_wait_opts *opts); /* opts: or NULL */
bool fl_communicator_running(fl_engine *e, const fl_program *p);

/* Who waits for whom at the server "host:port" now, a line each; fl_free. On
 * another host than the server's, only how many wait. Err: EINVAL (no
 * host:port), EIO, ETIMEOUT (no server answers there). */
fl_err fl_why(const char *address, char **text);

/* What this process is in a job, from arguments and the environment. */
typedef enum fl_duty {
    FL_DUTY_LOCAL, /* no job: it trains alone */
    FL_DUTY_TRAINER,
    FL_DUTY_PSERVER,
} fl_duty;

typedef enum fl_role_mode {
    FL_MODE_LOCAL,
    FL_MODE_PSERVER,    /* trainers and parameter servers */
    FL_MODE_COLLECTIVE, /* trainers among themselves */
} fl_role_mode;

/* Arguments win over the environment; NULL: not said. */
typedef struct fl_role_args {
    const char *role;      /* "TRAINER" or "PSERVER" */
    const char *endpoints; /* "host:port, host:port" */
    const char *endpoint;  /* one's own */
    const char *trainer_id, *trainers;
} fl_role_args;

typedef struct fl_role {
    fl_duty duty;
    fl_role_mode mode;
    int trainer_id, trainers;
    int n_endpoints;        /* of servers; in collective mode of trainers */
    const char **endpoints; /* "host:port" */
    const char *endpoint;   /* one's own; NULL: it needs none */
    const char *durability; /* what of a server outlives its process */
    struct {                /* the variable, "argument NAME" or "default" */
        const char *duty, *trainer_id, *trainers, *endpoints, *endpoint,
            *durability;
    } source;
    int n_settings; /* "FLUID_LEASE=5" and others that are set */
    const char **settings;
    int n_notes; /* sentences: what was mended, what looks like a mistake */
    const char **notes;
    struct fl_arena *arena; /* of all texts */
} fl_role;

/* Every dialect of the environment that Fluid had. EINVAL: two variables
 * contradict each other, or one is missing or wrong. args may be NULL. */
fl_err fl_role_init(fl_role *r, const fl_role_args *args);
void fl_role_fini(fl_role *r);
char *fl_role_text(const fl_role *r); /* each value and its source; fl_free */

/* Variables of the environment that look like misspelt names of the above, a
 * sentence a line; "" if there are none. fl_free. */
char *fl_role_misspelt(void);

/* Log lines also go to the file of this name in the folder PADDLE_LOG_DIR, if
 * that is set. Only the first call has an effect. */
void fl_log_keep(const char *name);
/* Log one line. */
void fl_log_line(const char *text);

/* --- Launching --------------------------------------------------------- */

enum {
    FL_RESTARTS_DEFAULT = INT32_MIN /* see fl_launch_opts */
};

/* Servers and trainers of a job, or the ranks of a collective job: on this
 * host, where several hosts may launch alike; or on all hosts that ssh reaches.
 */
typedef struct fl_launch_opts {
    int n; /* what every process runs: a program or script and its arguments */
    const char *const *command;
    const char *python; /* runs a .py script; NULL: $PADDLE_PYTHON, python3 */
    int servers, trainers;        /* on each host */
    bool collective;              /* trainers alone: servers is not read */
    const char *endpoints;        /* of servers, or of all ranks; NULL: from
                                   * start_port on */
    int start_port;               /* 0: 6170 and on, as far as they are free */
    const char *node_ip;          /* this host; NULL: "127.0.0.1" */
    const char *cluster_node_ips; /* all hosts; NULL: this one */
    const char *hosts; /* by ssh: "user@host:port,host"; NULL: none. The fields
                        * up to `insecure` are read with it only */
    const char *ssh;   /* command and flags; NULL: "ssh" */
    const char *remote_paddle;  /* the command there; NULL: as here, or in the
                                 * PATH */
    const char *workspace;      /* folder there in which all runs; NULL: the
                                 * current one, or a new one for the package */
    const char *workspace_root; /* of new ones; NULL: the home folder */
    const char *package;        /* folder here that becomes the workspace */
    const char *exported;       /* variables that all processes get: "A,B" */
    bool insecure;              /* no TLS between hosts; also without `hosts` */
    bool mpi;                   /* mpirun has started a launcher on each host */
    bool slurm; /* all hosts of this job of Slurm, by srun: as `hosts` */
    bool pod;   /* the one process of a pod that fl_k8s_write names;
                 * servers and trainers are those of the job */
    const char *log_dir; /* serverlog.N, workerlog.N; NULL: "logs" */
    const char *gpus; /* collective: "2,3" starts a rank for each, which finds
                       * it in FLAGS_selected_gpus; wins over trainers */
    int max_restarts; /* so often a trainer that fails, or a server that is
                         killed and keeps its state, starts again within a
                         minute; collective: so often all ranks do;
                         FL_RESTARTS_DEFAULT: 3, and only after a death by a
                         signal; collective: 0 */
    const char *durability;  /* FLUID_DURABILITY of all processes; NULL or "":
                                as it is here; or else "auto", or "memory" if
                                max_restarts is 0 */
    bool quiet;              /* the output of trainer 0 is not shown */
    bool dry_run;            /* show what would be started, and end */
    int (*poll)(void *user); /* not 0: as Ctrl-C; or NULL */
    void *user;
} fl_launch_opts;

/* Start them, wait for all, say on stderr who failed first. *code is what to
 * exit with: that one's, or 0. Err: EINVAL, EIO; nothing is left running. */
fl_err fl_launch_job(const fl_launch_opts *opts, int *code);

/* Start the job again whose snapshots are in a folder, from the last of them:
 * the command line, folder and variables of its launcher are kept there. This
 * process becomes that launcher; it returns only on failure. Err: ENOENT: there
 * is no snapshot; EPROTO, EIO. */
fl_err fl_launch_resume(const char *dir);

/* The hosts of a file for `hosts`: a host in each line, of which the first word
 * counts, or HOSTS = ["host", ...] as in Paddle's conf.py. Own: end *hosts with
 * fl_free. Err: ENOENT, EINVAL, EIO. */
fl_err fl_launch_hosts_read(const char *path, char **hosts);

/* Run processes of this host for a launcher on another one, which speaks to us
 * by these descriptors; they are closed. Returns when the launcher has gone and
 * no process is left. Err: EPROTO, EIO. */
fl_err fl_launch_agent(int in, int out);

/* A job on Kubernetes: its servers are a StatefulSet, its trainers Jobs. */
typedef struct fl_k8s_opts {
    int n; /* what every process runs: a program or script and its arguments */
    const char *const *command;
    const char *name;      /* of the job; NULL: that of the script */
    const char *image;     /* NULL: "fluid-" and the name */
    int servers, trainers; /* of the job */
    int port;              /* of each server; 0: 6174 */
    const char *claim;     /* PersistentVolumeClaim with data, at /data in all
                            * pods; NULL: none */
    const char *cpu, *memory; /* that each pod asks for; NULL: not said */
    bool indexed;             /* one Job with indices: Kubernetes 1.24 */
    bool insecure;            /* no TLS between pods */
    const char *folder;       /* of the files; NULL: "k8s" */
} fl_k8s_opts;

/* Write job.yaml, secret.yaml (certificates; unless insecure) and Dockerfile.
 * The same options give the same job.yaml and Dockerfile. Err: EINVAL, EIO. */
fl_err fl_k8s_write(const fl_k8s_opts *opts);

/* --- Data -------------------------------------------------------------- */

/* A slot of a line of text: a count, and so many values. */
typedef struct fl_data_slot {
    const char *name;
    fl_dtype dtype; /* FL_F32 or FL_I64 */
    bool sparse;    /* any number of values: [all of them, 1] with a LoD */
    bool unused;    /* it stands in the lines, and nobody wants it */
    fl_shape shape; /* of a dense one; its first dim is the batch */
} fl_data_slot;

/* Raw Criteo lines: a label, 13 numbers and 26 categories, tabs between them,
 * become 13 floats, 26 ids and the label, as Fluid's criteo_reader.py does it.
 */
typedef struct fl_criteo {
    int64_t dim;      /* ids are below it */
    const char *hash; /* NULL: "python", hash(str) with PYTHONHASHSEED=0; or
                         "crc32", "fnv" */
} fl_criteo;

typedef struct fl_dataset_opts {
    int n_slots;
    const fl_data_slot *slots;
    int n_files;
    const char *const *files; /* text, or gzip of it */
    const char *pipe; /* shell command for each file; NULL or "cat": none */
    const fl_criteo *criteo; /* the lines are Criteo's; NULL: slot by slot. A
                                pipe of "paddle read criteo ..." is this */
    int64_t batch;           /* examples; 0: 32 */
    int threads;             /* that load, or read; 0: 1 */
    int64_t bad_lines;       /* how many may be skipped; 0: none */
} fl_dataset_opts;

/* Files of examples, streamed or loaded into memory. Thread: one at a time,
 * but for its readers. */
typedef struct fl_dataset fl_dataset;

fl_dataset *fl_dataset_new(void);
void fl_dataset_free(fl_dataset *d); /* after its readers */

/* Everything is copied. EINVAL: it cannot be so; or it is being read, or other
 * slots are in memory. */
fl_err fl_dataset_set(fl_dataset *d, const fl_dataset_opts *opts);

/* Load all files, by threads that go on while this returns; then wait for
 * them. ETIMEOUT after so many nanoseconds (-1: never): they go on. The order
 * in memory is that of files and lines, however many threads there are. An
 * empty list loads nothing; reading that is the error. */
fl_err fl_dataset_load(fl_dataset *d);
fl_err fl_dataset_wait(fl_dataset *d, int64_t timeout);
void fl_dataset_release(fl_dataset *d);       /* memory; ends a load */
int64_t fl_dataset_size(const fl_dataset *d); /* examples in memory */
bool fl_dataset_loaded(const fl_dataset *d);  /* a load has ended well */
fl_err fl_dataset_shuffle(fl_dataset *d, uint64_t seed); /* what is loaded */

/* How many readers have work: as many as threads, files or batches. */
int fl_dataset_width(const fl_dataset *d);

typedef struct fl_reader_opts {
    int ahead; /* batches that a thread of the reader's own has ready; 0: it
                  has none, who asks for a batch does the work */
} fl_reader_opts;

/* Who reads a part of the data. Thread: one at a time, but for cancel. */
typedef struct fl_reader fl_reader;

/* n readers that share one pass over the data: each takes the next file, or
 * the next batch in memory, when it needs one. One alone sees all in order.
 * opts may be NULL. Own: readers[0 .. n - 1]. */
fl_err fl_dataset_open(fl_dataset *d, int n, const fl_reader_opts *opts,
                       fl_reader **readers);
void fl_reader_free(fl_reader *r); /* NULL is fine */

/* The next batch: a tensor for each slot that is used, in order. Memory that
 * they have is used again. *rows 0: there are no more. Err: ENOENT, EIO (a
 * file, a pipe command), EPROTO (a bad line: file, line, column, rule, text),
 * EINTR (cancelled). What failed fails again. */
fl_err fl_reader_next(fl_reader *r, fl_tensor *tensors, int64_t *rows);

/* fl_reader_next ends soon, now and later; pipe commands too. Thread: any. */
void fl_reader_cancel(fl_reader *r);

typedef struct fl_reader_stats {
    int64_t examples, batches;
    int64_t bytes;     /* of text */
    int64_t bad_lines; /* skipped, by all readers of the pass */
    int64_t read_ns;   /* in files, unpacking and waiting for commands */
    int64_t parse_ns;
    int64_t wait_ns; /* fl_reader_next waited for the thread ahead */
} fl_reader_stats;

fl_reader_stats fl_reader_look(fl_reader *r);
/* What was wrong with the i-th line that was skipped; NULL: so many are not
 * known. Lives with the readers. */
const char *fl_reader_bad_line(fl_reader *r, int i);

/* Criteo lines of the descriptor `in` as lines of slots to `out`, the bytes
 * that the Python reader would write. The first bad line is an error. */
fl_err fl_criteo_convert(const fl_criteo *how, int in, int out);

/* --- Training on data -------------------------------------------------- */

/* How far a pass over the data is. */
typedef struct fl_progress {
    int epoch;   /* as in the options */
    int threads; /* that work */
    int64_t examples, batches;
    int64_t bad_lines; /* skipped */
    double seconds;
    double rate;      /* examples a second, of late; at the end: of all */
    double fraction;  /* of the data; NAN: not known */
    double eta;       /* seconds that are left; NAN */
    double loss;      /* mean of late, of all threads; NAN: there is none */
    double auc;       /* NAN: there is none */
    int auc_trainers; /* of the job, whose it is; 1: this one's own */
    double reading, computing; /* shares of the threads' time, */
    double waiting;            /* with that for servers and for a turn */
    bool done;
    bool stopped; /* before the data ended, because it was asked to */
} fl_progress;

/* What fl_train_opts.poll may answer. */
typedef enum fl_train_wish {
    FL_GO_ON = 0,
    FL_END_NOW = 1,  /* fl_train fails with FL_EINTR */
    FL_END_STEP = 2, /* it ends well, once every thread ends its step */
} fl_train_wish;

typedef struct fl_train_opts {
    const fl_program *program;
    fl_scope *scope; /* parameters */
    fl_dataset *dataset;
    int threads; /* 0: the dataset's; never more than files or batches */
    bool infer;  /* it is not to learn: updates are warned of */
    bool debug;  /* every 100 batches times of operators, on stderr */
    int epoch;   /* to be shown; 0: none */
    /* Every `period` batches of the first thread (0: 100) the text of these
     * variables goes to `print`, each after its label (NULL: the names). */
    int n_fetches;
    const char *const *fetches, *const *labels;
    int64_t period;
    int (*print)(void *user, const char *text); /* not 0: FL_END_NOW */
    /* On stderr: "bar", "lines", "json", "off". NULL: as FLUID_STATUS says,
     * else a bar on a terminal and lines in a file. */
    const char *status;
    void (*progress)(void *user, const fl_progress *p); /* once a second */
    int (*poll)(void *user); /* an fl_train_wish; about 20 times a second */
    void *user;
} fl_train_opts;

/* One pass over a dataset. Each thread has a reader, a plan and temporaries of
 * its own; persistable variables are common and updated without locks, so that
 * one thread alone gives the same bits each time. Callbacks come on the
 * caller's thread. The first failure ends all threads and is returned; out
 * (may be NULL) tells how far it came. */
fl_err fl_train(fl_engine *e, const fl_train_opts *opts, fl_progress *out);

/* --- Saving ------------------------------------------------------------
 *
 * A save becomes visible as a whole or not at all, from any number of writers;
 * a manifest lists its files with sizes and checksums, and what is loaded is
 * compared with it. docs/saving.md tells more. A folder that cannot be written
 * is an error, but the values are then saved to another one, which the sentence
 * names. */

/* Every persistable variable of the program, one file each under its name in
 * `dir`, or all in `dir`/`file`. */
fl_err fl_save_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file);
fl_err fl_load_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file);

/* The same of those that are named; they are variables of any block. In one
 * file they stand in the order of their names. */
fl_err fl_save_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names);
fl_err fl_load_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names);

/* Checkpoints: numbered saves of all persistable variables, each with the last
 * step that it contains, in folders DIR/checkpoint_0, checkpoint_1 .. One that
 * was cut short by a crash does not count. */
typedef struct fl_checkpoint {
    int64_t serial; /* -1: there is none */
    int64_t epoch, step;
} fl_checkpoint;

/* The next one; *at has the step and gets the serial. Then all but the `most`
 * newest are removed. In a job with servers trainer 0 does it. */
fl_err fl_checkpoint_save(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, int most, fl_checkpoint *at);
/* The newest one that is undamaged, after the startup program has run. A server
 * loads what it keeps. EINVAL: p is a trainer's, and its servers have not
 * loaded it. */
fl_err fl_checkpoint_load(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, fl_checkpoint *out);
fl_err fl_checkpoint_clean(fl_engine *e, const char *dir); /* remove all */
/* A line for each checkpoint, the oldest first: its step, its size, and whether
 * it is whole. fl_free. */
fl_err fl_checkpoint_list(fl_engine *e, const char *dir, char **text);

typedef struct fl_model_opts {
    const char *model_file;  /* NULL: __model__ */
    const char *params_file; /* NULL: one file a variable */
    bool program_only;       /* save: the program without values */
    bool whole;              /* save: the program as it is, its file named with
                              * ".main_program" behind; no feeds, no targets */
} fl_model_opts;

/* What is needed to compute the targets from the feeds, and the values of its
 * parameters, in Paddle's layout. The program is not changed. */
fl_err fl_model_save(fl_engine *e, const fl_program *p, fl_scope *s,
                     const char *dir, int n_feeds, const char *const *feeds,
                     int n_targets, const char *const *targets,
                     const fl_model_opts *opts);

/* A saved model: its values are in the scope, the names in their order. */
typedef struct fl_model {
    fl_program *program;
    int n_feeds, n_fetches;
    const char **feeds, **fetches; /* live with the program */
} fl_model;

fl_err fl_model_load(fl_engine *e, const char *dir, fl_scope *s,
                     const fl_model_opts *opts, fl_model *out);
void fl_model_fini(fl_model *m);

/* A saved program or tensor in words, for people; of a directory, what each
 * file in it holds and whether it is as it was saved. fl_free. */
fl_err fl_show(fl_engine *e, const char *path, char **text);

/* A line for each state that a server has kept in FLUID_STATE_DIR, and for each
 * journal in FLUID_JOURNAL_DIR, or where servers keep them by default: whose it
 * is, its size, who holds it. fl_free. */
fl_err fl_state_list(char **text);
/* Discard a state or a journal. EINVAL: a process holds it, or it is none. */
fl_err fl_state_remove(const char *path);

/* A SHA-256 of all saved files of a folder, as hexadecimal digits: equal for
 * equal models, whatever the number of servers. EPROTO, ENOENT: a file is not
 * as it was saved. EINVAL: the folder has no manifest. */
enum {
    FL_DIGEST_TEXT = 65
};
fl_err fl_digest(fl_engine *e, const char *dir, char hex[FL_DIGEST_TEXT]);

/* Compare all files of a saved folder with its manifest. *text, also on
 * failure, has a line for each file that is damaged or missing. fl_free. */
fl_err fl_verify(fl_engine *e, const char *dir, char **text);

/* A line for each file in which two saved folders differ; "": they are equal.
 * fl_free. */
fl_err fl_differ(fl_engine *e, const char *a, const char *b, char **text);

#ifdef __cplusplus
}
#endif
#endif
