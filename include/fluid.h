/* fluid.h - build a program, differentiate it, run it.
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

/* --- Networks ---------------------------------------------------------- */

typedef struct fl_program fl_program; /* the graph; owns ops, vars and names */
typedef struct fl_var fl_var;         /* a variable of a program */
typedef struct fl_net fl_net; /* under construction: a main and a startup
                                 program, and the names given so far */

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
 * the length where it is a list (a list of one may be given as a single). */
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

#ifdef __cplusplus
}
#endif
#endif
