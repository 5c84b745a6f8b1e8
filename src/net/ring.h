/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - collective calls of the ranks of a mesh.
 *
 * Every rank makes the same calls in the same order. All buffers are changed in
 * place and no call allocates. Sums are made in an order that depends only on
 * the number of ranks and elements: all ranks get the same bits, and so does
 * every run. After an error the content of the buffer is undefined and the mesh
 * has failed; fl_mesh_move lists the errors. */
#ifndef FL_NET_RING_H
#define FL_NET_RING_H

#include "net/mesh.h"

typedef enum fl_reduce {
    FL_REDUCE_SUM,
    FL_REDUCE_MAX, /* NaN if an operand is NaN */
    FL_REDUCE_MIN, /* NaN if an operand is NaN */
    FL_REDUCE_PROD,
} fl_reduce;

/* For FL_F32, FL_F64, FL_I32 (whose sums wrap around) and FL_I64. Err: ETYPE.
 */
fl_err fl_ring_all_reduce(fl_mesh *m, fl_reduce how, fl_dtype type, void *x,
                          int64_t n) FL_MUST_CHECK;

/* x has `world` parts of n elements each. After the call part `rank` is the
 * result, and the other parts are undefined. Err: ETYPE. */
fl_err fl_ring_reduce_scatter(fl_mesh *m, fl_reduce how, fl_dtype type, void *x,
                              int64_t n) FL_MUST_CHECK;

/* Part i of x is at[i] .. at[i + 1], in bytes; rank i has filled it. at has
 * world + 1 entries and is the same on all ranks. Parts may be empty. */
fl_err fl_ring_all_gather(fl_mesh *m, void *x, const size_t *at) FL_MUST_CHECK;

/* All ranks get the bytes of rank `root`. Err: EINVAL (no such rank). */
fl_err fl_ring_broadcast(fl_mesh *m, int root, void *x,
                         size_t size) FL_MUST_CHECK;

/* Returns when every rank has called it. */
fl_err fl_ring_barrier(fl_mesh *m) FL_MUST_CHECK;

#endif
