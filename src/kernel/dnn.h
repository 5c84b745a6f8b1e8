/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.h - oneDNN, as our kernels use it.
 *
 * Tensors lie in memory as plain [n,c,h,w]; a primitive may want another
 * order. A step is one primitive with its arguments: what it wants otherwise is
 * reordered on the way in or out, in the workspace that the caller gives. All
 * else is made once for a shape, and running it then allocates nothing of
 * ours.
 *
 * Every function that can fail says so by false: the caller has another way. */
#ifndef FL_KERNEL_DNN_H
#define FL_KERNEL_DNN_H

#include <dnnl.h>
#include <signal.h>
#include <stdbool.h>

/* oneDNN runs on OpenMP, whose threads would fight with ours: whoever calls it
 * says first that this thread wants no help. */
void fl_dnn_alone(void);

/* Around whatever computes in oneDNN. Its products put the stack pointer into
 * their own memory for a while; a signal handler that ran then would write its
 * frame over the heap. So signals wait until the product is done. */
void fl_dnn_enter(sigset_t *was);
void fl_dnn_leave(const sigset_t *was);

enum {
    FL_DNN_ARGS = 4,
};

/* One argument of a primitive. */
typedef struct fl_dnn_arg {
    int id; /* DNNL_ARG_SRC, ... */
    bool out;
    dnnl_memory_t plain;      /* over the caller's memory */
    dnnl_memory_t packed;     /* as the primitive wants it; NULL: as it is */
    dnnl_primitive_t reorder; /* NULL with packed: another step fills it */
    size_t at;                /* where packed lies in the workspace, in bytes */
} fl_dnn_arg;

/* Thread: one at a time. */
typedef struct fl_dnn_step {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t prim;
    dnnl_memory_t space; /* the primitive's own, behind the arguments */
    size_t space_at;
    size_t bytes; /* of the workspace */
    int n;
    fl_dnn_arg arg[FL_DNN_ARGS];
} fl_dnn_step;

/* What an argument is to the caller. `query` finds what the primitive made of
 * it: dnnl_query_src_md, ... */
typedef struct fl_dnn_spec {
    int id;
    dnnl_query_t query;
    bool out;
    const dnnl_memory_desc_t *plain;
    int index; /* of the query; 1: the bias among the weights */
} fl_dnn_spec;

/* The best primitive for an operation desc; `hint` is the forward one's, or
 * NULL. With relu it is the last thing that the primitive does. False also
 * where oneDNN has only its slow reference. The primitive's own memory is the
 * caller's to give. */
bool fl_dnn_choose(const void *op, bool relu, dnnl_engine_t engine,
                   const_dnnl_primitive_desc_t hint,
                   dnnl_primitive_desc_t *out);

/* A step that failed to begin still wants its fini. */
bool fl_dnn_step_init(fl_dnn_step *s, dnnl_engine_t engine,
                      const_dnnl_primitive_desc_t pd, int n,
                      const fl_dnn_spec *spec);
void fl_dnn_step_fini(fl_dnn_step *s);

/* Argument `a` of `s` takes what argument `b` of `first` packed from the same
 * tensor, if both want the same order. `first` must run first. */
void fl_dnn_share(fl_dnn_step *s, int a, fl_dnn_step *first, int b);

/* at[i] is the caller's memory of argument i. The workspace has s->bytes,
 * 64-byte aligned; between two steps that share an argument it stays as it is.
 */
bool fl_dnn_step_run(fl_dnn_step *s, void *const *at, void *workspace);

#endif
