/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - matrix products.
 *
 *     C[m,n] = alpha * op(A)[m,k] op(B)[k,n] + beta * C
 *
 * Everything is row-major and dense: op(A) is A stored [m,k], or with ta the
 * transpose of A stored [k,m]; the same for B. With beta = 0 the old content
 * of C is ignored. C overlaps neither A nor B. The same arguments give the
 * same bits on the same machine, from whichever thread. */
#ifndef FL_KERNEL_GEMM_H
#define FL_KERNEL_GEMM_H

#include "tensor/tensor.h"

void fl_gemm_f32(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *a, const float *b, float beta, float *c);
void fl_gemm_f64(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                 double alpha, const double *a, const double *b, double beta,
                 double *c);

/* The function for elements of type `t`, which is f32 or f64. */
void fl_gemm(fl_dtype t, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
             double alpha, const void *a, const void *b, double beta, void *c);

#endif
