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
 * README.md has a program that trains and frees what it made.
 *
 * Handles are opaque. A call that can fail returns fl_err, and fl_errmsg()
 * then has one sentence for the user. Results are not changed on failure
 * unless a comment says so. In option structs zero is the default. Contracts
 * use fixed words: "Own:" says who frees, "Err:" which errors there are,
 * "Thread:" which threads may call. Lists that end with {0} or NULL say so.
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
    FL_EPROTO,   /* a file or message is damaged or breaks its format */
    FL_ETIMEOUT, /* the deadline passed */
    FL_ENOMEM,   /* there is not enough memory for the data */
    FL_EINTR,    /* the caller cancelled the operation */
    FL_ETYPE,    /* the operation does not support the dtype */
    FL_EENDED,   /* the job has ended, and not because of this process */
    FL_EDONE,    /* an earlier process of this trainer has completed */
} fl_err;

/* Exit code of a process that ends with this error: 0 for FL_OK, else 1. If a
 * launcher has started the process: FL_EXIT_ENDED for FL_EENDED, by which the
 * launcher knows that another process has failed first, and FL_EXIT_DONE for
 * FL_EDONE: the end of the earlier process counts. */
enum {
    FL_EXIT_ENDED = 75,
    FL_EXIT_DONE = 76
};
int fl_exit_code(fl_err err);

/* The program has come to its end and will only leave its job and free memory.
 * If it is killed after this and after it has completed, its launcher knows
 * that nothing is lost. */
void fl_exit_begin(void);

const char *fl_errmsg(void); /* last failure on this thread; never NULL */

const char *fl_version(void);
void fl_free(void *p); /* frees text and bytes that a call has returned */

/* The entry of `names` (a NULL is at its end) that is most similar to a
 * misspelt `name`. NULL: none is similar. */
const char *fl_nearest(const char *name, const char *const *names);

/* The engine: it has the tables of operators, access to files, the source of
 * seeds, and the jobs that its programs have joined. Two engines of one process
 * are independent. Free it after everything that was made with it.
 * fl_engine_free completes the jobs that fl_engine_leave has not left. */
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

/* Level of detail: how rows are grouped into sequences. Level 0 is the
 * outermost. Level l has n[l] offsets, of which the first is 0. Offsets of the
 * last level are row numbers; those of the other levels are indices of
 * sequences of the next level. */
typedef struct fl_lod {
    int levels;
    int64_t n[FL_MAX_LOD];
    const int64_t *off[FL_MAX_LOD];
    fl_buf *buf; /* owns what off points to; NULL: the caller does */
} fl_lod;

/* A tensor is a small value. If it has a buf, it holds a reference to counted
 * memory, and fl_tensor_fini releases it. Otherwise data belongs to the caller.
 */
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

/* A tensor over memory of the caller, which is not copied. */
fl_tensor fl_tensor_view(fl_dtype dtype, const fl_shape *shape,
                         const void *data);
/* Release the memory of t, which is then a tensor without memory. */
void fl_tensor_fini(fl_tensor *t);

/* Give t this dtype and shape. The elements are undefined, and the LoD is
 * removed. The memory of t is reused if it is large enough and not shared.
 * Err: EINVAL, ENOMEM. */
fl_err fl_tensor_resize(fl_tensor *t, fl_dtype dtype, const fl_shape *shape);

/* dst shares the memory and the LoD of src. Memory that src borrows is copied.
 */
fl_err fl_tensor_ref(fl_tensor *dst, const fl_tensor *src);

/* dst becomes an independent copy of src and of its LoD. */
fl_err fl_tensor_copy(fl_tensor *dst, const fl_tensor *src);

/* Convert n elements as C does. Where C leaves the result undefined (a float
 * beyond the range of int64) it is the nearest int64, and 0 for NaN. */
fl_err fl_convert(int64_t n, fl_dtype from, const void *src, fl_dtype to,
                  void *dst);

/* Copy a LoD. The memory of dst is reused if it is large enough and not
 * shared. */
fl_err fl_lod_copy(fl_lod *dst, const fl_lod *src);

/* Make a LoD from sequence lengths: level l has n[l] of them, length[l]. */
fl_err fl_lod_from_lengths(fl_lod *dst, int levels, const int64_t *n,
                           const int64_t *const *length);

/* Check that offsets start at 0 and do not decrease, that the last offset of a
 * level is the number of sequences of the next level, and that the last offset
 * of the last level is `rows` (-1: not compared). Err: EINVAL. */
fl_err fl_lod_check(const fl_lod *l, int64_t rows);

/* The kind of value that a variable holds. The numbers are those of Paddle's
 * VarType. */
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

/* Selected rows of a matrix: row i of `value` is row index[i] of a matrix with
 * `height` rows. A row may be listed several times; its values are then added
 * up. */
typedef struct fl_rows {
    int64_t height;
    int64_t n;       /* number of rows in the list */
    fl_tensor index; /* i64 [n] */
    fl_tensor value; /* [n, ...] */
} fl_rows;

/* Make room for n rows of a matrix of this dtype and shape; shape.dim[0] is the
 * height. The contents are undefined. Memory is reused if it is large enough.
 */
fl_err fl_rows_resize(fl_rows *r, fl_dtype dtype, const fl_shape *shape,
                      int64_t n);

/* The value of a variable at run time. A scope owns its values; the caller owns
 * those of fl_value_new. */
typedef struct fl_value fl_value;
fl_value *fl_value_new(void);
void fl_value_free(fl_value *v);          /* only values of fl_value_new */
fl_kind fl_value_kind(const fl_value *v); /* 0: the value is empty */
/* Whether it is a tensor whose elements only the servers have: it has a shape
 * but no memory. */
bool fl_value_is_absent(const fl_value *v);

/* The tensor, or the selected rows, that v holds. An empty value becomes an
 * empty one of that kind. Own: borrowed from v. Err: EINVAL: v holds another
 * kind. */
fl_err fl_value_tensor(fl_value *v, fl_tensor **out);
fl_err fl_value_rows(fl_value *v, fl_rows **out);
/* The n tensors of an array. Own: borrowed from v. Err: EINVAL. */
fl_err fl_value_array(fl_value *v, int64_t *n, fl_tensor **out);

/* --- Networks ---------------------------------------------------------- */

typedef struct fl_program fl_program; /* the graph; owns ops, vars and names */
typedef struct fl_var fl_var;         /* a variable of a program */
typedef struct fl_net fl_net; /* a network under construction: a main and a
                                 startup program, and the names used so far */

/* A net with two empty programs of its own. */
fl_net *fl_net_new(fl_engine *e);
void fl_net_free(fl_net *n); /* frees both programs, but not clones of them */
fl_program *fl_net_main(fl_net *n);
/* The program that initialises the parameters. Run it once before main. */
fl_program *fl_net_startup(fl_net *n);
/* Set the random seed of both programs, which layers that are added from now on
 * use. 0: random numbers differ in every run. */
void fl_net_seed(fl_net *n, int64_t seed);
/* The first error of a layer call, which fl_errmsg() then describes; FL_OK:
 * there was none. */
fl_err fl_net_error(const fl_net *n);

/* How a parameter is initialised. Kinds: "constant" (a), "uniform" (from a to
 * b), "normal" and "truncated_normal" (mean a, deviation b), "xavier", "msra",
 * "bilinear", "array". */
typedef struct fl_init fl_init;
struct fl_init {
    const char *kind;
    double a, b;
    bool gaussian;          /* xavier, msra: normal instead of uniform */
    double fan_in, fan_out; /* 0: computed from the shape */
    int64_t seed;           /* 0: the random seed of the startup program */
    const fl_tensor *array; /* values for "array" */
    /* If set, it is called instead, and appends the ops that initialise v to
     * the startup program. */
    fl_err (*emit)(const fl_init *self, fl_net *n, fl_var *v);
    void *user; /* data of the caller for `emit` */
};

/* Weight decay, which is added to a gradient: "l1" or "l2". */
typedef struct fl_regularizer fl_regularizer;
struct fl_regularizer {
    const char *kind;
    float coeff;
    /* If set, it is called instead. *term is the variable that is added to the
     * gradient. */
    fl_err (*emit)(const fl_regularizer *self, fl_net *n, fl_var *param,
                   fl_var *grad, fl_var **term);
    void *user; /* data of the caller for `emit` */
};

/* How gradients are clipped: "value" (each element to min .. max), "norm" (the
 * norm of each gradient to max), "global_norm" (the norm of all gradients of
 * the group to max). */
typedef struct fl_clip {
    const char *kind;
    float max, min;
    const char *group; /* for global_norm; NULL means "default_group" */
    void *user;        /* data of the caller; copies keep the pointer */
} fl_clip;

/* The settings of a parameter. */
typedef struct fl_param_attr {
    const char *name; /* NULL: made from the name of the layer */
    const fl_init *init;
    float learning_rate; /* multiplies the optimiser's rate; 0 means 1 */
    bool frozen;         /* the parameter is not trained */
    const fl_regularizer *regularizer;
    const fl_clip *clip;
    bool no_average; /* model averages do not include it */
    bool none;       /* the layer has no such parameter (for example no bias) */
    /* Weight normalisation: a direction NAME_v and a norm NAME_g are trained
     * instead. There is a norm for each index of dimension weight_norm_dim, or
     * one for all elements (-1). */
    bool weight_norm;
    int weight_norm_dim;
    bool summary; /* every optimiser adds its gradient to it unscaled, as for
                     counts and sums over the data */
} fl_param_attr;

/* One argument of a layer. The layer's table says which member is read. For a
 * list, n is its length; a list of one element may also be given as the element
 * itself with n 0, and an empty list has n -1. A NULL pointer means that the
 * argument is not given. */
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
        const fl_param_attr *attr; /* n > 0: an array of n */
        const fl_init *init;
        const fl_regularizer *regularizer;
        const fl_clip *clip;
        const fl_tensor *tensor;
    };
} fl_arg;

/* Add the layer `name`, for example "fc", and return its first output. args
 * ends with {0}. After a failure it returns NULL; the net keeps the first error
 * (fl_net_error), and later calls do nothing, so that a script can check once,
 * at the end. */
fl_var *fl_layer(fl_net *n, const char *name, const fl_arg *args);

/* The same with all outputs. Returns their number, or -1 after a failure; at
 * most `max` are stored. */
int fl_layer_all(fl_net *n, const char *name, const fl_arg *args, int max,
                 fl_var **outs);

#define FL_LAYER(net, name, ...)                                               \
    fl_layer(net, name, (const fl_arg[]){__VA_ARGS__, {0}})

/* Append the op for "x op y", or for "x op number" if y is NULL. op is written
 * as in Python: + - * / ** // % == != < <= > >=. With `reversed` the operands
 * are swapped (2.0 - x). Results are named tmp_0, tmp_1 ... */
fl_err fl_var_math(fl_net *n, const char *op, fl_var *x, fl_var *y,
                   double number, bool reversed, fl_var **out);

const char *fl_var_name(const fl_var *v);
fl_dtype fl_var_dtype(const fl_var *v);
const fl_shape *fl_var_shape(const fl_var *v);

/* Append the gradient ops of `loss` and the update ops of an optimiser, for
 * example "sgd" with {"learning_rate", .f = 0.01}. The net keeps an error as it
 * keeps those of layers. */
fl_err fl_minimize(fl_net *n, fl_var *loss, const char *optimizer,
                   const fl_arg *args);

/* --- Programs ---------------------------------------------------------- */

/* A copy of the program. With for_test the attribute is_test of its ops becomes
 * true. Own: free it with fl_program_free. */
fl_program *fl_program_clone(const fl_program *p, bool for_test);
void fl_program_free(fl_program *p);
/* A readable text of the program. Own: fl_free. */
char *fl_program_text(const fl_program *p);

/* Write and read a program as a file in Paddle's format (a `__model__`). */
fl_err fl_program_save(fl_engine *e, const fl_program *p, const char *path);
fl_err fl_program_load(fl_engine *e, const char *path, fl_program **out);

/* --- Inside programs --------------------------------------------------- */

/* A program consists of blocks, and a block of variables and operators. They,
 * their names and all values that the functions below return are owned by the
 * program and live as long as it, even after they were removed from a block;
 * only fl_program_take frees them earlier.
 * Thread: one at a time for a program, which must not change while it runs. */
typedef struct fl_block fl_block;
typedef struct fl_op fl_op;
typedef struct fl_arena fl_arena; /* memory that is freed as a whole */

fl_program *fl_program_new(fl_engine *e); /* it has an empty global block */
uint64_t fl_program_version(const fl_program *p); /* counts changes */
int64_t fl_program_seed(const fl_program *p);
void fl_program_set_seed(fl_program *p, int64_t seed);
fl_block *fl_program_block(const fl_program *p, int i); /* NULL: no block i */
fl_block *fl_program_add_block(fl_program *p, int parent);

/* A new program with only the ops, and their sub-blocks, that `targets` (names
 * in the global block) depend on. Err: ENOENT: no op writes a target. */
fl_err fl_program_prune(const fl_program *p, int n, const char *const *targets,
                        fl_program **out);

/* The program that computes the targets from the feeds: pruned, with is_test
 * set and with feed and fetch ops. Own: *out is new. */
fl_err fl_inference_program(const fl_program *p, int n_feeds,
                            const char *const *feeds, int n_targets,
                            const char *const *targets, fl_program **out);

/* Move the contents of src to dst. The former blocks, ops and vars of dst are
 * freed. Own: src is empty afterwards, and the caller still frees it. */
void fl_program_take(fl_program *dst, fl_program *src);

/* Check the rules between ops, vars and blocks. Err: EINVAL names the rule and
 * the place: "op 3 \"mul\" in block 0 reads \"x\", which no var ..." */
fl_err fl_program_verify(const fl_program *p);

/* The program as a ProgramDesc of Paddle. Own: *bytes, fl_free. */
fl_err fl_program_encode(const fl_program *p, void **bytes, size_t *n);
/* Decode a ProgramDesc. The bytes are not trusted. Error messages begin with
 * `name`, the file. Own: *out is new. */
fl_err fl_program_read(fl_engine *e, const char *name, const void *bytes,
                       size_t n, fl_program **out);

/* The same messages in protobuf's text format. Own: fl_free. */
char *fl_program_proto(const fl_program *p);
char *fl_block_proto(const fl_block *b);
char *fl_op_proto(const fl_op *op);
char *fl_var_proto(const fl_var *v);

/* - blocks - */

typedef struct fl_block_info {
    fl_program *program;
    int idx, parent; /* parent -1: the global block */
    int forward;     /* the block whose gradient this block computes, or -1 */
    int64_t n_ops, n_vars;
} fl_block_info;

fl_block_info fl_block_look(const fl_block *b);
void fl_block_set_forward(fl_block *b, int forward);

/* What a parameter has besides the fields of a variable. The protobuf form
 * does not have it, as in Fluid. A program keeps copies; only what `user`
 * points to is borrowed. */
typedef struct fl_param_info {
    bool trainable;
    float learning_rate;               /* multiplies the optimiser's rate */
    const fl_regularizer *regularizer; /* NULL: that of the optimiser */
    const fl_clip *clip;
    bool do_model_average;
    bool summary; /* it is a sum over the data, to which every optimiser adds
                     its gradient unscaled */
} fl_param_info;

typedef struct fl_var_info {
    const char *name;
    fl_block *block; /* set by fl_var_look; the other functions ignore it */
    fl_kind kind;    /* 0 means FL_LOD_TENSOR */
    fl_dtype dtype;
    fl_shape shape;
    int lod_level;
    bool persistable, stop_gradient, is_data;
    const fl_param_info *param; /* NULL: not a parameter */
    const fl_clip *error_clip;
} fl_var_info;

fl_var_info fl_var_look(const fl_var *v);
void fl_var_set(fl_var *v, const fl_var_info *to); /* all but the name */

/* Declare a var in this block. If the block has a var of that name, it is
 * returned, and its kind, dtype, shape, LoD level and persistability must be
 * the same. Err: EINVAL. */
fl_err fl_block_declare(fl_block *b, const fl_var_info *like, fl_var **out);
/* The vars in order of creation. Returns their number; at most `max` are
 * stored. */
int64_t fl_block_vars(const fl_block *b, int64_t max, fl_var **out);
/* The var of this block; NULL: it has none of that name. */
fl_var *fl_block_var(const fl_block *b, const char *name);
/* The var of this block, or else of its forward block, or else in the same way
 * of its parents. NULL: none. */
fl_var *fl_block_find(const fl_block *b, const char *name);
bool fl_block_remove_var(fl_block *b, const char *name); /* false: none */
/* Rename a var of this block, also in the ops of the block and its sub-blocks.
 */
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

/* An attribute: a default in an operator's table, or a value in a program. */
typedef struct fl_attr {
    const char *name; /* NULL ends a table */
    fl_attr_type type;
    bool required; /* in an operator's table: there is no default */
    bool ours;     /* in an operator's table: Fluid does not have it, so
                      programs contain it only where it was set */
    int n;         /* length of a list */
    union {
        int64_t i; /* INT, LONG, BLOCK */
        float f;
        bool b;
        const char *s;        /* STRING; NULL means "" */
        const int64_t *longs; /* INTS, LONGS, BLOCKS */
        const float *floats;
        const char *const *strings;
        const bool *bools;
    };
} fl_attr;

const char *fl_attr_type_name(fl_attr_type t); /* "int", "float", "longs" */

/* The variables in one slot of an operator. */
typedef struct fl_args {
    const char *slot;
    int n;
    const char **name; /* "@EMPTY@": no variable at this position */
} fl_args;

/* An operator as written in a program. Slots and attributes keep the order in
 * which they were given. */
typedef struct fl_desc {
    const char *type;
    int n_in, n_out, n_attr;
    fl_args *in, *out;
    fl_attr *attr;
    fl_arena *arena; /* holds the fields of an op in a program; may be NULL in
                        a desc that is passed to a function, which copies it */
} fl_desc;

/* Insert a copy of `desc` at index `at` (-1: the end). The desc is checked
 * against the table of its operator, and shapes, dtypes, kinds and LoD levels
 * of its outputs are inferred. Outputs that have no var get one. Nothing
 * changes on failure. out may be NULL. Err: EINVAL, ENOENT; ESHAPE. */
fl_err fl_block_insert_op(fl_block *b, int64_t at, const fl_desc *desc,
                          fl_op **out);
fl_op *fl_block_op(const fl_block *b, int64_t i); /* NULL: no op i */
void fl_block_remove_op(fl_block *b, int64_t at);

const fl_desc *fl_op_look(const fl_op *op); /* its present desc, borrowed */
fl_block *fl_op_block(const fl_op *op);
int64_t fl_op_index(const fl_op *op); /* in its block; -1: it was removed */
fl_err fl_op_set_attr(fl_op *op, const fl_attr *value);
bool fl_op_remove_attr(fl_op *op, const char *name); /* false: none */
void fl_op_rename_in(fl_op *op, const char *from, const char *to);
void fl_op_rename_out(fl_op *op, const char *from, const char *to);
fl_err fl_op_infer(fl_op *op); /* infer the shapes of its outputs again */

/* --- Tables ------------------------------------------------------------ */

/* Slot flags. */
enum {
    FL_MANY = 1,          /* it takes a list of variables */
    FL_OPTIONAL = 2,      /* it may be left out; other slots are required */
    FL_NOGRAD = 4,        /* this input gets no gradient */
    FL_INTERMEDIATE = 8,  /* only the gradient op reads this output */
    FL_VIEW = 16,         /* this output may share the memory of an input: the
                           * kernel sets it, and the executor does not resize
                           * it */
    FL_SHAPES = 32,       /* the elements of this input determine the shape of
                           * an output */
    FL_UNREAD = 64,       /* of this input only dtype and shape are read */
    FL_GRAD_UNREAD = 128, /* of this input the gradient op reads only dtype and
                           * shape */
    FL_FILLS = 256,       /* if this output holds selected rows, they stay, and
                           * the kernel fills their values */
    FL_TOKEN = 512,       /* this output only orders ops; it is not written */
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

/* Which member of fl_arg is read. A type with two members is told apart by n:
 * 0 means the first, 1 or more the second. */
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

/* Each returns the number of rows. Own: the rows belong to the engine. */
int fl_op_table(const fl_engine *e, const fl_op_info **out);
int fl_layer_table(const fl_engine *e, const fl_signature **out);
int fl_optimizer_table(const fl_engine *e, const fl_signature **out);

/* --- Building on given programs ---------------------------------------- */

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

/* Makes unique names: key "fc" gives fc_0, then fc_1. */
typedef struct fl_names fl_names;
fl_names *fl_names_new(const char *prefix); /* NULL: no prefix */
void fl_names_free(fl_names *n);
char *fl_names_give(fl_names *n, const char *key); /* Own: fl_free */

/* The block that a net appends ops to, and the attributes that it sets on each
 * of them. All pointers are borrowed. */
typedef struct fl_net_state {
    fl_program *main, *startup;
    fl_names *names;
    int block;               /* current block of main */
    int role;                /* op_role */
    const char *role_var[2]; /* op_role_var (param, grad); NULL: none */
    const char *scope;       /* op_namescope; NULL means "/" */
    int n_callstack;         /* op_callstack, the source lines that made the op;
                                0: the attribute is not set */
    const char *const *callstack;
} fl_net_state;

/* A net that builds on these programs. Own: the net is new; the caller still
 * owns the programs and names, which must outlive it. */
fl_net *fl_net_over(fl_program *main, fl_program *startup, fl_names *names);
fl_net_state fl_net_look(const fl_net *n);
void fl_net_set(fl_net *n, const fl_net_state *s);

/* fl_block_insert_op that also sets the attributes of fl_net_state. */
fl_err fl_net_add_op(fl_net *n, fl_block *b, int64_t at, const fl_desc *desc,
                     fl_op **out);

/* Make a parameter: a variable in the global blocks of main and startup, and
 * the op in startup that initialises it. attr NULL: the default. Unless attr
 * has a name, it is made from `layer`: fc_0.w_0, or fc_0.b_0 for a bias.
 * init_default NULL: Xavier for weights, 0 for biases. If there is a parameter
 * of that name, it is shared; dtype and shape must be the same. */
fl_err fl_net_param(fl_net *n, const fl_param_attr *attr, const char *layer,
                    bool bias, fl_dtype dtype, const fl_shape *shape,
                    const fl_init *init_default, fl_var **out);

/* Declare `v` as a persistable variable of the startup program, and insert the
 * op that initialises it before the others, as Fluid does. Nothing changes if
 * an op of startup writes the variable already. */
fl_err fl_init_emit(const fl_init *i, fl_net *n, fl_var *v);

/* A switch: the first case whose condition is true runs. Each case is a
 * conditional_block with a sub-block; logical_not and logical_and compute
 * whether no earlier case was true.
 *
 *     fl_switch s = {0};
 *     FL_TRY(fl_switch_case(n, &s, condition));  // NULL: the default
 *     ... append to the net ...
 *     FL_TRY(fl_switch_end(n, &s)); */
typedef struct fl_switch {
    const char *name;   /* name of this instance; the first case makes it */
    fl_var *not_before; /* true if no earlier case was true */
    fl_var *cond;       /* condition of the open case */
    int parent;         /* block in which the switch is */
} fl_switch;

fl_err fl_switch_case(fl_net *n, fl_switch *s, fl_var *cond);
fl_err fl_switch_end(fl_net *n, fl_switch *s);

/* - gradients - */

typedef struct fl_param_grad {
    fl_var *param, *grad; /* grad NULL: the loss does not depend on param */
} fl_param_grad;

typedef struct fl_param_grads {
    fl_param_grad *at; /* Own: the caller frees it with fl_free */
    int64_t n, cap;
} fl_param_grads;

typedef struct fl_ops {
    fl_op **at; /* Own: the caller frees it with fl_free */
    int64_t n, cap;
} fl_ops;

typedef struct fl_backward_opts {
    int n_params; /* 0: every trainable parameter */
    const char *const *params;
    int n_no_grad;
    const char *const *no_grad; /* variables that get no gradient */
} fl_backward_opts;

/* Append the ops that compute the gradients of `loss` to main. Names and the
 * order of sums are Fluid's. */
fl_err fl_backward(fl_net *n, fl_var *loss, const fl_backward_opts *opts,
                   fl_param_grads *out);

/* Append the gradients of targets with respect to inputs. grads[i] becomes NULL
 * if no target depends on inputs[i]. target_grads NULL: all ones. */
fl_err fl_gradients(fl_net *n, int n_targets, fl_var *const *targets,
                    fl_var *const *target_grads, int n_inputs,
                    fl_var *const *inputs, const fl_backward_opts *opts,
                    fl_var **grads);

/* Set how the gradients of these parameters, or of all (n_params 0), are
 * clipped. clip NULL: they are not. */
fl_err fl_net_set_clip(fl_net *n, const fl_clip *clip, int n_params,
                       const char *const *params);

/* Call fn with each gradient op of one op, in order; no program is changed. For
 * variables that no_grad names the gradient is @EMPTY@. */
fl_err fl_op_grads(const fl_op *op, int n_no_grad, const char *const *no_grad,
                   void (*fn)(void *user, const fl_desc *d), void *user);

/* The two steps between gradients and updates; minimize does both. Each
 * replaces the gradients in pgs by its results. The first clips each gradient
 * as the clip of its parameter says. The second adds weight decay: the
 * regularizer of the parameter, or else `other` (NULL: none). */
fl_err fl_clip_grads(fl_net *n, fl_param_grads *pgs);
fl_err fl_decay_grads(fl_net *n, const fl_regularizer *other,
                      fl_param_grads *pgs);

/* - optimisers - */

typedef struct fl_optimizer fl_optimizer; /* Thread: as its net */

/* learning_rate is a float, or a variable (with n = 1), for example the output
 * of a schedule. Own: *out is new; the net must outlive it. */
fl_err fl_optimizer_new(fl_net *n, const char *name, const fl_arg *args,
                        fl_optimizer **out);
void fl_optimizer_free(fl_optimizer *o);

/* The functions of an optimiser. They are called after the gradients were
 * clipped and decayed. */
typedef struct fl_optimizer_hooks {
    /* Called once, with the parameters that are updated; or NULL. */
    fl_err (*begin)(void *user, fl_optimizer *o, const fl_param_grads *pgs);
    /* Called for each parameter that is updated. */
    fl_err (*update)(void *user, fl_optimizer *o, const fl_param_grad *pg);
    /* Called once, with all parameters; or NULL. */
    fl_err (*finish)(void *user, fl_optimizer *o, const fl_param_grads *pgs);
    void *user;
} fl_optimizer_hooks;

/* An optimiser that the caller implements. args: learning_rate, regularization,
 * name. Own: *out is new. */
fl_err fl_optimizer_custom(fl_net *n, const fl_optimizer_hooks *hooks,
                           const fl_arg *args, fl_optimizer **out);

/* Replace the functions of an optimiser. Returns the old ones, which the new
 * ones may call with the `user` of the old. */
fl_optimizer_hooks fl_optimizer_hook(fl_optimizer *o,
                                     const fl_optimizer_hooks *mine);

/* Append the gradients of `loss` and the updates. out (may be NULL): parameters
 * and their gradients before clipping and decay, in order of creation. ops (may
 * be NULL): the update ops. */
fl_err fl_optimizer_minimize(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out,
                             fl_ops *ops);

/* The two parts of minimize. Parameters are updated in the order of their
 * names; gradients are clipped first, then decay is added. */
fl_err fl_optimizer_backward(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out);
fl_err fl_optimizer_apply_gradients(fl_optimizer *o, const fl_param_grads *pgs,
                                    fl_ops *ops);

/* The variable with the learning rate of a parameter: the optimiser's rate, or
 * its product with the rate of the parameter if that is not 1. param NULL: the
 * optimiser's rate, which is NULL before the first update was appended. */
fl_err fl_optimizer_rate(fl_optimizer *o, const fl_var *param, fl_var **out);

/* Add a persistable variable `<param>_<kind>_<n>` with the initial value
 * `start`. shape NULL: that of the parameter. Err: EINVAL: the parameter has an
 * accumulator of that kind already. */
fl_err fl_optimizer_accumulator(fl_optimizer *o, const char *kind,
                                const fl_var *param, double start,
                                const fl_shape *shape, fl_var **out);
fl_var *fl_optimizer_get(const fl_optimizer *o, const char *kind,
                         const fl_var *param); /* NULL: none */
/* Call fn for every accumulator. */
void fl_optimizer_each(const fl_optimizer *o,
                       void (*fn)(void *user, const char *kind,
                                  const char *param, fl_var *v),
                       void *user);

/* --- Running ----------------------------------------------------------- */

typedef struct fl_scope fl_scope; /* values by name */
typedef struct fl_exe fl_exe;     /* runs programs; keeps their plans */

/* A scope must outlive the executors that run on it. */
fl_scope *fl_scope_new(void);
void fl_scope_free(fl_scope *s);

/* Names are looked up in the scope, then in its parents. Thread: any for the
 * scope; a value may be used by one thread at a time. */
fl_scope *fl_scope_child(fl_scope *parent); /* freed with its parent */
void fl_scope_drop_kids(fl_scope *s);       /* free all children of s */
/* The value in this scope itself; an empty one is made if there is none. */
fl_value *fl_scope_var(fl_scope *s, const char *name);
fl_value *fl_scope_find(fl_scope *s, const char *name); /* NULL: none */
/* Remove a name from this scope itself. False: it does not have it. */
bool fl_scope_erase(fl_scope *s, const char *name);
/* Call fn for each value of this scope itself, in order of creation. */
void fl_scope_each(fl_scope *s,
                   void (*fn)(void *self, const char *name, fl_value *v),
                   void *self);

typedef struct fl_exe_opts {
    bool no_fuse; /* ops are not fused; then results have the same bits
                     whichever variables are fetched */
    bool lenient; /* fetching a variable that was not written gives an empty
                     tensor instead of an error */
    /* Called between ops, about every 50 ms; or NULL. A result other than 0
     * ends the run with FL_EINTR. */
    int (*poll)(void *user);
    void *user;
} fl_exe_opts;

/* The tensor may be a view of memory of the caller. It is not read after the
 * run has returned. */
typedef struct fl_feed {
    const char *name;
    fl_tensor tensor;
} fl_feed;

/* Own: the caller frees the results with fl_fetch_fini. If the struct is used
 * again, its memory is reused where it is large enough. */
typedef struct fl_fetch {
    const char *name;
    fl_tensor tensor;
    fl_rows rows; /* result if the variable holds selected rows */
    fl_kind kind; /* which of the two was set; 0: nothing was written */
} fl_fetch;
void fl_fetch_fini(fl_fetch *f); /* frees the results; the name stays */

/* Run a program once. Persistable variables are in the scope; new ones are made
 * in its root. All other variables exist only during the run. The first run of
 * a program compiles it; later runs with the same feed and fetch names do not.
 * Err: EINVAL, ENOENT (a feed is missing, a name unknown), ESHAPE, and errors
 * of operators, which end with the place: (op 12 "mul" in block 0). Thread: one
 * at a time for an executor; several executors may share a scope. */
fl_err fl_exe_run(fl_exe *e, const fl_program *p, fl_scope *s, int n_feeds,
                  const fl_feed *feeds, int n_fetches, fl_fetch *fetches);
void fl_exe_free(fl_exe *e);

/* The value of LOSS@GRAD at each of several places: Fluid's
 * GradientScaleStrategy. The gradients of all places are added up. */
typedef enum fl_grad_scale {
    FL_GRAD_MEAN, /* 1 / places */
    FL_GRAD_SUM,  /* 1 */
    FL_GRAD_FED,  /* the caller feeds it */
} fl_grad_scale;

typedef struct fl_places {
    int n;      /* number of places; each is a thread */
    bool apart; /* the caller has split the batch: `feeds` has n * n_feeds
                   entries, place by place, with the same names for each */
    fl_grad_scale scale;
} fl_places;

/* Run a program once with its batch split over several threads. Each feed is
 * split into n slices with the same number of rows (with LoD: of sequences);
 * the last slice also has the remainder. A batch with fewer rows than places
 * uses one place per row. Forward and backward ops run on every place.
 * Gradients are added up in the order of places, so that the bits do not depend
 * on timing. Updates and schedules run once. Of persistable variables that
 * forward ops write (running means) those of the first place are kept.
 * A fetch concatenates the values of all places along axis 0: a mean loss has
 * shape [n]. A variable that all places share (a parameter, a summed gradient)
 * is repeated n times, unless it is selected rows. */
fl_err fl_exe_run_places(fl_exe *e, const fl_places *places,
                         const fl_program *p, fl_scope *s, int n_feeds,
                         const fl_feed *feeds, int n_fetches,
                         fl_fetch *fetches);

/* opts may be NULL. Own: fl_exe_free. */
fl_exe *fl_exe_new(fl_engine *e, const fl_exe_opts *opts);

/* Times of the operators of one type. */
typedef struct fl_profile_row {
    const char *type; /* borrowed until profiling is switched on again */
    int64_t calls, total, max, min; /* times in nanoseconds */
} fl_profile_row;

/* Switch profiling on, which clears the times, or off, which keeps them. */
void fl_exe_profile(fl_exe *e, bool on);
/* The rows, the largest total first. Returns their number; at most `max` are
 * stored. */
int fl_exe_profile_rows(const fl_exe *e, int max, fl_profile_row *out);
/* All calls as a file for chrome://tracing. Own: fl_free. */
char *fl_exe_profile_trace(const fl_exe *e);

/* Copy a variable of a scope to `out`; copy a tensor to a variable, which is
 * made if it does not exist. */
fl_err fl_scope_get(fl_scope *s, const char *name, fl_tensor *out);
fl_err fl_scope_set(fl_scope *s, const char *name, const fl_tensor *t);

/* --- Many hosts -------------------------------------------------------- */

/* Chooses the server of each slice of a parameter: Fluid's PSDispatcher.
 * dispatch is called once, with the names of all n slices, and sets
 * endpoints[i] to one of the servers. */
typedef struct fl_dispatcher {
    fl_err (*dispatch)(void *user, int n, const char *const *pieces,
                       const char **endpoints);
    void *user;
} fl_dispatcher;

/* A trainer id that is not known yet: the coordinator assigns ids in order of
 * arrival. */
enum {
    FL_ANY_ID = -1
};

typedef struct fl_transpile_opts {
    const char *pservers;     /* "host:port, host:port"; required */
    int trainers;             /* number of trainers; 0 means 1 */
    int trainer_id;           /* the servers refuse a second live process with
                                 the same id; or FL_ANY_ID */
    bool async;               /* trainers do not wait for each other */
    bool half_async;          /* async, but the threads of a trainer wait for
                                 each other after every batch */
    bool no_slices;           /* parameters are not split over servers */
    int64_t min_block_size;   /* least number of elements of a slice; 0 means
                                 8192 */
    const char *split_method; /* "RoundRobin" or "HashName"; NULL:
                                 "RoundRobin" */
    const fl_dispatcher *dispatcher; /* used instead of split_method; or NULL */
    bool runtime_split_send_recv;    /* send and recv themselves split and join
                                        slices, instead of ops of the program */
    bool enable_dc_asgd, geo_sgd_mode; /* not supported: an error if set */
    int geo_sgd_need_push_nums;
    int n_params;              /* number of parameters that servers update, if
                                  params_grads was given; 0: all parameters */
    const char *const *params; /* their names */
    bool sum_gradients; /* servers take the sum of the trainers' gradients
                           instead of their mean */
    int dense_servers;  /* this many servers, the first ones, hold the
                         * parameters with dense gradients, and the others those
                         * with sparse gradients; 0: all servers hold both */
    int serial; /* number that tells consecutive jobs with the same programs
                   apart; 0: there is only one */
} fl_transpile_opts;

/* The result of the transpiler: the programs of a trainer and of each server.
 */
typedef struct fl_cut fl_cut;

/* Split a training program into those of trainers and servers. The given
 * programs are not changed, and no socket is used. Own: *cut is new; the engine
 * must outlive it. Err: EINVAL, ENOENT. */
fl_err fl_transpile(const fl_program *main, const fl_program *startup,
                    const fl_transpile_opts *opts, fl_cut **cut);
void fl_cut_free(fl_cut *c); /* frees its programs, too */

/* The programs. Own: borrowed from the cut. Err: ENOENT: no server has this
 * endpoint; the message lists those that there are. */
fl_program *fl_cut_trainer(const fl_cut *c);
fl_program *fl_cut_trainer_startup(const fl_cut *c);
fl_err fl_cut_server(const fl_cut *c, const char *endpoint,
                     fl_program **program, fl_program **startup);

/* The endpoints of the servers, in their order. Returns their number. Own:
 * borrowed from the cut. */
int fl_cut_endpoints(const fl_cut *c, const char *const **out);

/* Options for training without servers (collective mode). */
typedef struct fl_collective_opts {
    const char *trainers; /* "host:port, host:port" of all ranks; required */
    int rank;             /* rank of this process: its index in trainers */
    const char *endpoint; /* endpoint of this process, which must be that of its
                             rank; NULL: not compared */
    /* NULL or "nccl2": only startup changes: it connects the ranks, and
     * fl_collective_grads makes the program to run. "grad_allreduce": main sums
     * its gradients over all ranks. "local_sgd": each rank updates its own
     * parameters, and main averages the changes. */
    const char *mode;
    int rings;         /* number of rings that share the tensors; 0 means 1 in
                          nccl2, and 2 otherwise */
    bool hierarchical; /* nccl2: an attribute of the program without effect */
    int inter_nranks;  /* nccl2: an attribute of the program without effect */
} fl_collective_opts;

/* Make the programs of a rank. The given programs are not changed. Own: both
 * results are new. Err: EINVAL. */
fl_err fl_collective(const fl_program *main, const fl_program *startup,
                     const fl_collective_opts *opts, fl_program **main_out,
                     fl_program **startup_out);
/* A copy of main in which the gradients are averaged (or summed) over the given
 * number of ranks, which ring 0 connects. Own: *out is new; NULL: main has no
 * gradients. */
fl_err fl_collective_grads(const fl_program *main, int ranks,
                           fl_grad_scale scale, fl_program **out);
/* A program that copies the persistable variables of main from rank 0 to all
 * ranks of ring 0. Own: *out is new. */
fl_err fl_collective_broadcast(const fl_program *main, fl_program **out);

/* The limit of a wait, and how to cancel it. */
typedef struct fl_wait_opts {
    int64_t limit_ms; /* 0: FLUID_START, or else ten minutes */
    /* Called about 50 times a second; or NULL. A result other than 0 ends the
     * wait with FL_EINTR. */
    int (*poll)(void *user);
    void *user;
} fl_wait_opts;

/* Wait until a parameter server answers at every endpoint. After one second and
 * then every five seconds a line on stderr says how many answer. opts may be
 * NULL. Err: EINVAL (not an endpoint), ETIMEOUT, EINTR. Thread: any. */
fl_err fl_wait_ports(int n, const char *const *endpoints,
                     const fl_wait_opts *opts);

/* Give servers that were started without a program (fl_serve) their programs.
 * Trainer 0 sends them, with the values of all parameters in its scope; other
 * trainers wait until that is done. Call it before programs of the cut run.
 * opts may be NULL. Err: EINVAL (a server has another job, or refuses the
 * program and says why), ETIMEOUT, EINTR. */
fl_err fl_cut_set_up(const fl_cut *c, fl_scope *scope,
                     const fl_wait_opts *opts);

/* Copy the parameters of p, the program of a trainer, from the servers into a
 * scope. Includes parameters that the trainer looks up row by row. opts may be
 * NULL. */
fl_err fl_params_fetch(fl_engine *e, const fl_program *p, fl_scope *scope,
                       const fl_wait_opts *opts);

/* Options for parameter servers without a program, one on each port. */
typedef struct fl_serve_opts {
    int port;         /* the first port */
    int ports;        /* number of servers for parameters with dense gradients;
                         at least 1 */
    int sparse_ports; /* number of servers for parameters with sparse gradients;
                         their ports follow */
    int trainers;     /* number of trainers of a job; at least 1 */
    const char *nics; /* network devices to listen on, separated by commas; NULL
                         or "": the address in PADDLE_CURRENT_IP or POD_IP, or
                         else all addresses */
    bool keep;        /* wait for another job after one has ended */
    const char *durability; /* "memory", "process" or "auto"; NULL or "": the
                               value of FLUID_DURABILITY, or else "auto" */
    int *signal; /* set to SIGINT or SIGTERM if it has come, else to 0; NULL:
                    the caller does not ask */
} fl_serve_opts;

/* Run the servers. Returns when the job has ended, or after SIGTERM or SIGINT.
 * Err: EINTR (a signal came before the job was complete); EINVAL (an option is
 * wrong, a device does not exist); the error of the job. */
fl_err fl_serve(fl_engine *e, const fl_serve_opts *opts);

/* Leave the jobs that programs of the engine have joined as trainers: this
 * process has completed (code 0), or it has failed for the reason `why`.
 * Returns when the servers have been told. Afterwards those programs neither
 * send nor receive. limit_ms 0: as long as servers may be silent. opts may be
 * NULL. Err: EIO or EENDED (a job failed; the message says how), ETIMEOUT,
 * EINTR. */
fl_err fl_engine_leave(fl_engine *e, int code, const char *why,
                       const fl_wait_opts *opts);

/* Start the communicator of an asynchronous trainer. From now on, gradients
 * that p sends are queued and added up, and other threads send them while p
 * runs on, as FLAGS_communicator_* say; recv copies the values that these
 * threads received last. p is a program of fl_cut_trainer. Err: EINVAL. */
fl_err fl_communicator_start(fl_engine *e, const fl_program *p);
/* Send all queued gradients and end the communicator; send and recv then work
 * as before. fl_engine_leave does it, too. p must not be running. opts may be
 * NULL; its limit_ms is ignored. */
fl_err fl_communicator_stop(fl_engine *e, const fl_program *p,
                            const fl_wait_opts *opts);
bool fl_communicator_running(fl_engine *e, const fl_program *p);

/* A text that says which processes wait for which others at the server
 * "host:port", one per line. A server on another host tells only how many wait.
 * Own: *text, fl_free. Err: EINVAL (not host:port), EIO, ETIMEOUT (no server
 * answers there). */
fl_err fl_why(const char *address, char **text);

/* The kind of this process in a job, from arguments and the environment. */
typedef enum fl_duty {
    FL_DUTY_LOCAL, /* it trains alone, without a job */
    FL_DUTY_TRAINER,
    FL_DUTY_PSERVER,
} fl_duty;

typedef enum fl_role_mode {
    FL_MODE_LOCAL,
    FL_MODE_PSERVER,    /* trainers and parameter servers */
    FL_MODE_COLLECTIVE, /* trainers without servers */
} fl_role_mode;

/* Values that replace those of the environment. NULL: not given. */
typedef struct fl_role_args {
    const char *role;      /* "TRAINER" or "PSERVER" */
    const char *endpoints; /* "host:port, host:port" */
    const char *endpoint;  /* endpoint of this process */
    const char *trainer_id, *trainers;
} fl_role_args;

typedef struct fl_role {
    fl_duty duty;
    fl_role_mode mode;
    int trainer_id, trainers;
    int n_endpoints;        /* number of servers, or of trainers in collective
                               mode */
    const char **endpoints; /* "host:port" */
    const char *endpoint;   /* endpoint of this process; NULL: it needs none */
    const char *durability; /* which state of a server outlives its process */
    struct { /* where each value is from: a variable, "argument NAME" or
                "default" */
        const char *duty, *trainer_id, *trainers, *endpoints, *endpoint,
            *durability;
    } source;
    int n_settings; /* other variables that are set: "FLUID_LEASE=5" */
    const char **settings;
    int n_notes; /* sentences about values that were corrected or look wrong */
    const char **notes;
    struct fl_arena *arena; /* holds all texts */
} fl_role;

/* Read the environment in every form that Fluid has used. args may be NULL.
 * Own: end *r with fl_role_fini. Err: EINVAL: two variables contradict each
 * other, or one is missing or wrong. */
fl_err fl_role_init(fl_role *r, const fl_role_args *args);
void fl_role_fini(fl_role *r);
/* Each value and where it is from, one per line. Own: fl_free. */
char *fl_role_text(const fl_role *r);

/* A sentence for each environment variable that looks like a misspelt name of
 * one that is read, one per line; "": there are none. Own: fl_free. */
char *fl_role_misspelt(void);

/* Also write log lines to the file `name` in the folder PADDLE_LOG_DIR, if that
 * variable is set. Only the first call has an effect. */
void fl_log_keep(const char *name);
/* Log one line. */
void fl_log_line(const char *text);

/* --- Launching --------------------------------------------------------- */

enum {
    FL_RESTARTS_DEFAULT = INT32_MIN /* see fl_launch_opts */
};

/* What to launch: the servers and trainers of a job, or the ranks of a
 * collective job. They are started on this host (the user may start the same
 * launch on other hosts) or on all hosts of a list. */
typedef struct fl_launch_opts {
    int n;                      /* length of `command` */
    const char *const *command; /* what every process runs: a program or script,
                                   and its arguments */
    const char *python; /* interpreter of a .py script; NULL: PADDLE_PYTHON, or
                           else python3 */
    int servers, trainers;        /* numbers of processes on each host */
    bool collective;              /* start ranks; `servers` is ignored */
    const char *endpoints;        /* endpoints of all servers, or of all ranks;
                                   * NULL: made from hosts and start_port */
    int start_port;               /* first port; 0: the first free ports from
                                     6170 on */
    const char *node_ip;          /* this host; NULL: "127.0.0.1" */
    const char *cluster_node_ips; /* all hosts; NULL: only this one */
    const char *hosts; /* hosts to reach by ssh: "user@host:port,host"; NULL:
                        * this host. The fields from here to `exported` are
                        * used only with it or with `slurm` */
    const char *ssh;   /* ssh command and its flags; NULL: "ssh" */
    const char *remote_paddle;  /* path of the paddle command on the hosts;
                                 * NULL: the path of this one, or else PATH */
    const char *workspace;      /* working directory on the hosts; NULL: the
                                 * current one, or a new one for `package` */
    const char *workspace_root; /* parent of new workspaces; NULL: the home
                                 * directory */
    const char *package;        /* local folder that is copied to the hosts as
                                 * their workspace */
    const char *exported;       /* names of environment variables that all
                                 * processes get: "A,B" */
    bool insecure;              /* no TLS between hosts; also without `hosts` */
    bool mpi;                   /* mpirun has started a launcher on each host */
    bool slurm; /* start the job by srun on all hosts of this Slurm job, instead
                   of `hosts` */
    bool pod;   /* start the one process of this Kubernetes pod (fl_k8s_write);
                 * `servers` and `trainers` are those of the whole job */
    const char *log_dir; /* folder of serverlog.N and workerlog.N; NULL: "logs"
                          */
    const char *gpus; /* collective: "2,3" starts a rank for each number, which
                       * gets it in FLAGS_selected_gpus; replaces `trainers` */
    int max_restarts; /* how often a process is started again within a minute:
                         a trainer that has failed, or a server that was killed
                         and has kept its state. Collective: how often all ranks
                         are started again. FL_RESTARTS_DEFAULT: 3, but only
                         trainers that a signal has killed; collective: 0 */
    const char *durability;  /* FLUID_DURABILITY of all processes; NULL or "":
                                that of the launcher, or else "auto", or
                                "memory" if max_restarts is 0 */
    bool quiet;              /* do not show the output of trainer 0 */
    bool dry_run;            /* only show what would be started */
    int (*poll)(void *user); /* a result other than 0 acts like Ctrl-C; or NULL
                              */
    void *user;
} fl_launch_opts;

/* Start the processes, wait until all have ended, and say on stderr which
 * failed first. *code is the exit code of that one, or 0. No process is left
 * running. Err: EINVAL, EIO. */
fl_err fl_launch_job(const fl_launch_opts *opts, int *code);

/* Start a job again from its last snapshot in the folder `dir`, which also has
 * the command line, working directory and variables of its launcher. This
 * process becomes that launcher, so that the call returns only on failure.
 * Err: ENOENT (there is no snapshot), EPROTO, EIO. */
fl_err fl_launch_resume(const char *dir);

/* Read a file of hosts for the field `hosts`. It has one host per line, of
 * which only the first word is read, or HOSTS = ["host", ...] as Paddle's
 * conf.py. Own: *hosts, fl_free. Err: ENOENT, EINVAL, EIO. */
fl_err fl_launch_hosts_read(const char *path, char **hosts);

/* Run processes on this host for a launcher on another host, which sends
 * commands to descriptor `in` and reads answers from `out`. Both are closed.
 * Returns when the launcher has gone and no process is left. Err: EPROTO, EIO.
 */
fl_err fl_launch_agent(int in, int out);

/* A job on Kubernetes: its servers are a StatefulSet, its trainers Jobs. */
typedef struct fl_k8s_opts {
    int n;                      /* length of `command` */
    const char *const *command; /* what every process runs: a program or script,
                                   and its arguments */
    const char *name;           /* name of the job; NULL: that of the script */
    const char *image;          /* NULL: "fluid-" and the name of the job */
    int servers, trainers;      /* numbers of processes of the job */
    int port;                   /* port of each server; 0 means 6174 */
    const char *claim; /* PersistentVolumeClaim with data, mounted at /data
                        * in all pods; NULL: none */
    const char *cpu, *memory; /* resource requests of each pod; NULL: none */
    bool indexed;             /* one indexed Job, which needs Kubernetes 1.24 */
    bool insecure;            /* no TLS between pods */
    const char *folder;       /* where the files are written; NULL: "k8s" */
} fl_k8s_opts;

/* Write job.yaml, secret.yaml (certificates; unless insecure) and Dockerfile.
 * The same options give the same job.yaml and Dockerfile. Err: EINVAL, EIO. */
fl_err fl_k8s_write(const fl_k8s_opts *opts);

/* --- Data -------------------------------------------------------------- */

/* A slot of a line of text: a count, and that many values. */
typedef struct fl_data_slot {
    const char *name;
    fl_dtype dtype; /* FL_F32 or FL_I64 */
    bool sparse;    /* any number of values; a batch has them in a tensor
                       [all values, 1] with a LoD */
    bool unused;    /* lines have it, but batches do not */
    fl_shape shape; /* shape of a dense slot; its first dim is the batch */
} fl_data_slot;

/* How to read raw Criteo lines (a label, 13 numbers and 26 categories,
 * separated by tabs). They become 13 floats, 26 ids and the label, as in
 * Fluid's criteo_reader.py. */
typedef struct fl_criteo {
    int64_t dim;      /* number of different ids: 0 .. dim - 1 */
    const char *hash; /* "python" (hash(str) with PYTHONHASHSEED=0), "crc32" or
                         "fnv"; NULL: "python" */
} fl_criteo;

typedef struct fl_dataset_opts {
    int n_slots;
    const fl_data_slot *slots;
    int n_files;
    const char *const *files; /* text files; they may be gzipped */
    const char *pipe; /* shell command that converts each file; NULL or "cat":
                         none */
    const fl_criteo *criteo; /* files have Criteo lines; NULL: they have slots.
                                The pipe "paddle read criteo ..." has the same
                                effect */
    int64_t batch;           /* examples per batch; 0 means 32 */
    int threads;             /* threads that load or read; 0 means 1 */
    int64_t bad_lines;       /* how many bad lines are skipped before it is an
                                error */
} fl_dataset_opts;

/* Files of examples, streamed or loaded into memory. Thread: one at a time;
 * each of its readers may be on another thread. */
typedef struct fl_dataset fl_dataset;

fl_dataset *fl_dataset_new(void);
void fl_dataset_free(fl_dataset *d); /* after its readers were freed */

/* Set all options; they are copied. Err: EINVAL: an option is wrong, readers
 * are open, or the examples in memory have other slots. */
fl_err fl_dataset_set(fl_dataset *d, const fl_dataset_opts *opts);

/* fl_dataset_load starts threads that load all files, and returns.
 * fl_dataset_wait waits for them for at most `timeout` nanoseconds (-1: no
 * limit); after ETIMEOUT the load goes on, and the caller may wait again. The
 * order in memory is that of files and lines, whatever the number of threads.
 * Loading an empty list of files is no error, but reading it is. */
fl_err fl_dataset_load(fl_dataset *d);
fl_err fl_dataset_wait(fl_dataset *d, int64_t timeout);
/* Cancel a load that runs, and free all examples in memory. */
void fl_dataset_release(fl_dataset *d);
int64_t fl_dataset_size(const fl_dataset *d); /* examples in memory */
bool fl_dataset_loaded(const fl_dataset *d);  /* a load has succeeded */
/* Shuffle the examples in memory. Err: EINVAL: none were loaded. */
fl_err fl_dataset_shuffle(fl_dataset *d, uint64_t seed);

/* The largest useful number of readers: that of threads, or of files (in
 * memory: of batches) if there are fewer. */
int fl_dataset_width(const fl_dataset *d);

typedef struct fl_reader_opts {
    int ahead; /* number of batches that a thread of the reader parses ahead; 0:
                  fl_reader_next parses on the caller's thread */
} fl_reader_opts;

/* A reader of a pass over the data. Thread: one at a time, except for
 * fl_reader_cancel. */
typedef struct fl_reader fl_reader;

/* Open n readers that share one pass over the data: each takes the next file,
 * or the next batch in memory, when it needs one. A single reader gets all
 * examples in order. opts may be NULL. Own: readers[0 .. n - 1]. */
fl_err fl_dataset_open(fl_dataset *d, int n, const fl_reader_opts *opts,
                       fl_reader **readers);
void fl_reader_free(fl_reader *r); /* NULL is fine */

/* Read the next batch: a tensor for each used slot, in order. Their memory is
 * reused. *rows is the number of examples; 0: the pass is at its end. Later
 * calls return the same error again. Err: ENOENT, EIO (a file, a pipe command),
 * EPROTO (a bad line: file, line, column, rule, text), EINTR (cancelled). */
fl_err fl_reader_next(fl_reader *r, fl_tensor *tensors, int64_t *rows);

/* End the present and all later calls of fl_reader_next soon, even if they wait
 * for a pipe command. Thread: any. */
void fl_reader_cancel(fl_reader *r);

typedef struct fl_reader_stats {
    int64_t examples, batches;
    int64_t bytes;     /* bytes of text */
    int64_t bad_lines; /* lines that all readers of the pass have skipped */
    int64_t read_ns;   /* time for reading files, unpacking, and waiting for
                          pipe commands */
    int64_t parse_ns;
    int64_t wait_ns; /* time that fl_reader_next waited for the thread that
                        parses ahead */
} fl_reader_stats;

fl_reader_stats fl_reader_look(fl_reader *r);
/* A sentence about the i-th bad line that was skipped; NULL: there are fewer,
 * or only the first ones were recorded. Own: the readers of the pass. */
const char *fl_reader_bad_line(fl_reader *r, int i);

/* Convert Criteo lines from descriptor `in` to lines of slots on descriptor
 * `out`, with the same bytes as the Python reader. The first bad line is an
 * error. */
fl_err fl_criteo_convert(const fl_criteo *how, int in, int out);

/* --- Training on data -------------------------------------------------- */

/* The progress of a pass over the data. */
typedef struct fl_progress {
    int epoch;   /* as in the options */
    int threads; /* number of threads that train */
    int64_t examples, batches;
    int64_t bad_lines; /* lines that were skipped */
    double seconds;    /* time since the start of the pass */
    double rate;       /* examples per second since the last report; at the end:
                          over the whole pass */
    double fraction;   /* share of the data that was used; NAN: not known */
    double eta;        /* estimated seconds until the end; NAN: not known */
    double loss;       /* mean loss of all threads since the last report; NAN:
                          there is none */
    double auc;        /* NAN: there is none */
    int auc_trainers;  /* how many trainers of the job the AUC includes; 1: only
                          this one */
    double reading, computing; /* shares of the threads' time, 0 to 1 */
    double waiting; /* share of time spent waiting for servers or other threads
                     */
    bool done;
    bool stopped; /* the pass ended early because `poll` or a signal asked for
                     it */
} fl_progress;

/* The results of fl_train_opts.poll. */
typedef enum fl_train_wish {
    FL_GO_ON = 0,
    FL_END_NOW = 1,  /* fl_train fails with FL_EINTR */
    FL_END_STEP = 2, /* fl_train succeeds after every thread has ended its step
                      */
} fl_train_wish;

typedef struct fl_train_opts {
    const fl_program *program;
    fl_scope *scope; /* has the parameters */
    fl_dataset *dataset;
    int threads; /* 0: as many as the dataset has; never more than files, or
                    batches in memory */
    bool infer;  /* the program should not train: a warning is logged if it
                    updates parameters */
    bool debug;  /* write the times of operators to stderr every 100 batches */
    int epoch;   /* number to show; 0: none */
    /* Every `period` batches of the first thread (0 means 100) `print` is
     * called with the text of these variables, each after its label (labels
     * NULL: their names). A result other than 0 means FL_END_NOW. */
    int n_fetches;
    const char *const *fetches, *const *labels;
    int64_t period;
    int (*print)(void *user, const char *text);
    /* How progress is shown on stderr: "bar", "lines", "json", "off". NULL: the
     * value of FLUID_STATUS, or else a bar on a terminal and lines in a file.
     */
    const char *status;
    void (*progress)(void *user, const fl_progress *p); /* once a second */
    int (*poll)(void *user); /* called about 20 times a second; returns an
                                fl_train_wish */
    void *user;
} fl_train_opts;

/* Train one pass over a dataset. Each thread has its own reader, plan and
 * temporaries. Persistable variables are shared and updated without locks; so
 * only training with one thread gives the same bits each time. Callbacks run on
 * the caller's thread. The first error ends all threads and is returned. out
 * (may be NULL) gets the progress, also after an error. */
fl_err fl_train(fl_engine *e, const fl_train_opts *opts, fl_progress *out);

/* --- Saving ------------------------------------------------------------
 *
 * A save becomes visible as a whole or not at all, whatever the number of
 * writers. A manifest lists its files with sizes and checksums, which are
 * compared when files are loaded. See docs/saving.md. If the folder cannot be
 * written, the values are saved to another folder, and the error message names
 * it. */

/* Save or load every persistable variable of the program: each in a file of its
 * name in `dir`, or all in `dir`/`file` (`file` NULL: one file each). */
fl_err fl_save_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file);
fl_err fl_load_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file);

/* The same for the named variables, which may be in any block. In one file they
 * are in the order of their names. */
fl_err fl_save_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names);
fl_err fl_load_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names);

/* Checkpoints: numbered saves of all persistable variables, in the folders
 * DIR/checkpoint_0, DIR/checkpoint_1 and so on. Each records the last step that
 * it includes. A checkpoint that a crash has interrupted is ignored. */
typedef struct fl_checkpoint {
    int64_t serial; /* number of the checkpoint; -1: there is none */
    int64_t epoch, step;
} fl_checkpoint;

/* Save the next checkpoint at the epoch and step of *at, which gets the serial;
 * then remove all but the `most` newest. In a job with servers trainer 0 calls
 * it. */
fl_err fl_checkpoint_save(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, int most, fl_checkpoint *at);
/* Load the newest undamaged checkpoint; run the startup program before. A
 * server loads only what it holds. Err: EINVAL: p is the program of a trainer,
 * and its servers have not loaded this checkpoint. */
fl_err fl_checkpoint_load(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, fl_checkpoint *out);
fl_err fl_checkpoint_clean(fl_engine *e, const char *dir); /* remove all */
/* A line for each checkpoint, the oldest first: its step, its size, and whether
 * it is complete. Own: *text, fl_free. */
fl_err fl_checkpoint_list(fl_engine *e, const char *dir, char **text);

typedef struct fl_model_opts {
    const char *model_file;  /* NULL: __model__ */
    const char *params_file; /* file with all values; NULL: one file per
                                variable */
    bool program_only;       /* save the program without values */
    bool whole;              /* save the program unpruned, without feeds and
                              * targets, and append ".main_program" to the name
                              * of its file */
} fl_model_opts;

/* Save a program that computes the targets from the feeds, and the values of
 * its parameters, in Paddle's layout. p is not changed. opts may be NULL. */
fl_err fl_model_save(fl_engine *e, const fl_program *p, fl_scope *s,
                     const char *dir, int n_feeds, const char *const *feeds,
                     int n_targets, const char *const *targets,
                     const fl_model_opts *opts);

/* A model that was loaded. */
typedef struct fl_model {
    fl_program *program;
    int n_feeds, n_fetches;
    const char **feeds, **fetches; /* names, in the order of the program, which
                                      owns them */
} fl_model;

/* Load a saved model; its values go to the scope. opts may be NULL. Own: end
 * *out with fl_model_fini. */
fl_err fl_model_load(fl_engine *e, const char *dir, fl_scope *s,
                     const fl_model_opts *opts, fl_model *out);
void fl_model_fini(fl_model *m);

/* A readable text of a saved program or tensor; of a directory, what each file
 * in it holds and whether it is undamaged. Own: *text, fl_free. */
fl_err fl_show(fl_engine *e, const char *path, char **text);

/* A line for each server state in FLUID_STATE_DIR and for each journal in
 * FLUID_JOURNAL_DIR (or in their default folders): its job and server, its
 * size, and the process that uses it. Own: *text, fl_free. */
fl_err fl_state_list(char **text);
/* Remove a server state or a journal. Err: EINVAL: a process uses it, or the
 * path is neither; ENOENT: it does not exist. */
fl_err fl_state_remove(const char *path);

/* The SHA-256 of all saved files of a folder, as hexadecimal digits. Equal
 * models have equal digests, whatever the number of servers. Err: EPROTO,
 * ENOENT (a file is damaged or missing), EINVAL (the folder has no manifest).
 */
enum {
    FL_DIGEST_TEXT = 65
};
fl_err fl_digest(fl_engine *e, const char *dir, char hex[FL_DIGEST_TEXT]);

/* Compare all files of a saved folder with its manifest. *text, also on
 * failure, has a line for each file that is damaged or missing; it is "" if the
 * folder does not exist or cannot be read. Own: *text, fl_free. Err: ENOENT,
 * EPROTO, EINVAL, EIO. */
fl_err fl_verify(fl_engine *e, const char *dir, char **text);

/* A line for each file in which two saved folders differ; "": they are equal.
 * Own: *text, fl_free. */
fl_err fl_differ(fl_engine *e, const char *a, const char *b, char **text);

#ifdef __cplusplus
}
#endif
#endif
