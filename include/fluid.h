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
} fl_err;

const char *fl_errmsg(void); /* last failure on this thread; never NULL */

const char *fl_version(void);
void fl_free(void *p); /* text and bytes that a call gave you */

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

/* A tensor over your memory, and the end of one that owns some. */
fl_tensor fl_tensor_view(fl_dtype dtype, const fl_shape *shape,
                         const void *data);
void fl_tensor_fini(fl_tensor *t); /* t is empty (no memory) again */

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

/* --- Running ----------------------------------------------------------- */

typedef struct fl_scope fl_scope; /* names and what they hold */
typedef struct fl_exe fl_exe;     /* runs programs; keeps their plans */

/* Scopes outlive the executors that run on them. */
fl_scope *fl_scope_new(void);
void fl_scope_free(fl_scope *s);

typedef struct fl_exe_opts {
    bool no_fuse; /* one kernel an op: bits do not depend on the plan */
} fl_exe_opts;

/* The tensor may borrow your memory: it is read before the run returns. */
typedef struct fl_feed {
    const char *name;
    fl_tensor tensor;
} fl_feed;

/* The tensor is yours: memory it has is used again if it suffices. */
typedef struct fl_fetch {
    const char *name;
    fl_tensor tensor;
} fl_fetch;

/* Run a program once. Persistable variables live in the scope (its root, when
 * they are new there); all others end with the run. The first run of a program
 * compiles it; later ones with the same feed and fetch names do not.
 * Err: EINVAL, ENOENT (a feed is missing, a name unknown), ESHAPE and what the
 * operators say, with "(op 12 "mul" in block 0)". Thread: one at a time for an
 * executor; several executors may share a scope. */
fl_err fl_exe_run(fl_exe *e, const fl_program *p, fl_scope *s, int n_feeds,
                  const fl_feed *feeds, int n_fetches, fl_fetch *fetches);
void fl_exe_free(fl_exe *e);

fl_exe *fl_exe_new(fl_engine *e, const fl_exe_opts *opts); /* opts: or NULL */

/* A variable of a scope: a copy out; a copy in, made if new. */
fl_err fl_scope_get(fl_scope *s, const char *name, fl_tensor *out);
fl_err fl_scope_set(fl_scope *s, const char *name, const fl_tensor *t);

/* --- Saving ------------------------------------------------------------ */

/* Every persistable variable of the program, one file each under its name in
 * `dir`, or all in `dir`/`file`. */
fl_err fl_save_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file);
fl_err fl_load_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file);

typedef struct fl_model_opts {
    const char *model_file;  /* NULL: __model__ */
    const char *params_file; /* NULL: one file a variable */
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

/* A saved program or tensor in words, for people. fl_free. */
fl_err fl_show(fl_engine *e, const char *path, char **text);
char *fl_show_ops(fl_engine *e); /* every operator, as markdown */

#ifdef __cplusplus
}
#endif
#endif
