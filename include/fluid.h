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

#ifdef __cplusplus
}
#endif
#endif
