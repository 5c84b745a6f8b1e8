/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.h - the interface of our kernels to oneDNN.
 *
 * Tensors lie in memory as plain [n,c,h,w]; a primitive may want another
 * order. A step is one primitive with its arguments: what it wants otherwise is
 * reordered on the way in or out, in the workspace that the caller gives. All
 * else is made once for a shape, and running it then allocates nothing of
 * ours.
 *
 * A function that can fail returns false, and the caller then uses another
 * way. */
#ifndef FL_KERNEL_DNN_H
#define FL_KERNEL_DNN_H

#include <dnnl.h>
#include <signal.h>
#include <stdbool.h>

/* oneDNN uses OpenMP, whose threads would compete with ours. Call this before
 * oneDNN, so that oneDNN runs on the calling thread alone. */
void fl_dnn_alone(void);

/* Call these before and after a computation of oneDNN. Its matrix products set
 * the stack pointer to memory of their own for a while; a signal handler that
 * runs then would overwrite the heap. So signals are blocked until the product
 * is done. */
void fl_dnn_enter(sigset_t *was);
void fl_dnn_leave(const sigset_t *was);

enum {
    FL_DNN_ARGS = 4,
};

/* One argument of a primitive. */
typedef struct fl_dnn_arg {
    int id; /* DNNL_ARG_SRC, ... */
    bool out;
    dnnl_memory_t plain;  /* describes the caller's memory */
    dnnl_memory_t packed; /* in the order that the primitive needs; NULL: that
                             of the caller's memory */
    dnnl_primitive_t reorder; /* between `plain` and `packed`; NULL if another
                                 step fills `packed` */
    size_t at; /* offset of `packed` in the workspace, in bytes */
} fl_dnn_arg;

/* Thread: one at a time. */
typedef struct fl_dnn_step {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t prim;
    dnnl_memory_t space; /* scratch memory of the primitive */
    size_t space_at;
    size_t bytes; /* size of the workspace */
    int n;
    fl_dnn_arg arg[FL_DNN_ARGS];
} fl_dnn_step;

/* An argument as the caller describes it. `query` (dnnl_query_src_md, ...)
 * returns the order that the primitive has chosen for it. */
typedef struct fl_dnn_spec {
    int id;
    dnnl_query_t query;
    bool out;
    const dnnl_memory_desc_t *plain;
    int index; /* index for the query; the bias is weight 1 */
} fl_dnn_spec;

/* The best primitive for an operation desc; `hint` is the forward one's, or
 * NULL. With `relu` the primitive applies relu to its result. Returns false
 * also if oneDNN has only its slow reference code. The caller provides the
 * primitive's scratch memory. */
bool fl_dnn_choose(const void *op, bool relu, dnnl_engine_t engine,
                   const_dnnl_primitive_desc_t hint,
                   dnnl_primitive_desc_t *out);

/* Call fini also for a step whose init failed. */
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
