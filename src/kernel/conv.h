/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h - 2-D convolutions: their geometry and two ways to compute them.
 *
 *     Output[n,m] = sum over the channels c of m's group of
 *                   Input[n,c] correlated with Filter[m,c]
 *
 * oneDNN is the fast way for f32; columns (each window of the input laid out
 * as one column of a matrix) and matrix products are the way for f64 and for
 * whatever oneDNN has no fast code for. */
#ifndef FL_KERNEL_CONV_H
#define FL_KERNEL_CONV_H

#include "op/op.h"

/* Structs are compared byte by byte, so there must be no padding. */
typedef struct fl_conv {
    int64_t n, c, h, w; /* Input [n, c, h, w] */
    int64_t m, kh, kw;  /* Filter [m, c / groups, kh, kw] */
    int64_t oh, ow;     /* Output [n, m, oh, ow] */
    int64_t groups;
    int64_t stride[2], pad[2], dilation[2]; /* down, across */
} fl_conv;

/* Gradients that are not needed are NULL. */
typedef struct fl_conv_grads {
    void *input, *filter;
} fl_conv_grads;

/* Returns false if oneDNN has no fast code for this shape. What oneDNN prepares
 * for a shape is kept in the frame's scratch. */
bool fl_conv_dnn(fl_call *c, const fl_conv *g, const float *x, const float *w,
                 float *y);
/* relu(Output + Bias) with its channels last: y is [n, oh, ow, m]. */
bool fl_conv_dnn_relu(fl_call *c, const fl_conv *g, const float *x,
                      const float *w, const float *bias, float *y);
/* last: dy has its channels last. */
bool fl_conv_dnn_grad(fl_call *c, const fl_conv *g, bool last, const float *x,
                      const float *w, const float *dy, fl_conv_grads out);

/* Whether fl_conv_last_grad is the faster way. There must be at least one
 * image. */
bool fl_conv_last_pays(const fl_conv *g);
/* By matrix products; dy has its channels last. */
fl_err fl_conv_last_grad(fl_call *c, const fl_conv *g, const float *x,
                         const float *w, const float *dy,
                         fl_conv_grads out) FL_MUST_CHECK;

/* [rows, columns] -> [columns, rows] */
void fl_turn_f32(int64_t rows, int64_t columns, const float *from, float *to);

/* For any shape. `col` is the memory from fl_conv_space. */
void fl_conv_gemm(fl_dtype t, const fl_conv *g, const void *x, const void *w,
                  void *col, void *y);
void fl_conv_gemm_grad(fl_dtype t, const fl_conv *g, const void *x,
                       const void *w, const void *dy, void *col,
                       fl_conv_grads out);

/* Memory for the columns, in the workspace. Returns NULL if there is not enough
 * memory; fl_fail was called, and the caller returns FL_ENOMEM. */
void *fl_conv_space(fl_call *c, const fl_conv *g, fl_dtype t) FL_MUST_CHECK;

#endif
