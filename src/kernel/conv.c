/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c - convolutions by columns and matrix products.
 *
 * For one image and one group, with K = c / groups * kh * kw and P = oh * ow:
 *
 *     columns[K,P]     what each weight meets at each place of the output
 *     Output[m,P]      = Filter[m,K] columns
 *     Filter@GRAD[m,K] = Output@GRAD columns^T, summed over images
 *     Input@GRAD       = Filter^T Output@GRAD, each added where it came from
 */
#define FL_SELF "kernel/conv.c"
#include "op/real.h"

#ifndef FL_OPS_CONV_C
#define FL_OPS_CONV_C

#include "kernel/conv.h"
#include "kernel/gemm.h"

#include <string.h>

/* One line of columns. The output positions [from, to) of a row read the row of
 * the input; the other positions read padding. */
typedef struct run {
    int64_t from, to, first; /* output position o reads x[first + o * stride] */
} run;

static run run_of(const fl_conv *g, int64_t j)
{
    int64_t first = j * g->dilation[1] - g->pad[1], step = g->stride[1];
    int64_t from = first < 0 ? (-first + step - 1) / step : 0;
    int64_t to = g->w > first ? (g->w - first + step - 1) / step : 0;
    to = to < g->ow ? to : g->ow;
    return (run){from < to ? from : to, to, first};
}

/* The row of the input that filter row i is applied to for output row o. A row
 * outside the input is padding. */
static int64_t row_of(const fl_conv *g, int64_t o, int64_t i)
{
    return o * g->stride[0] + i * g->dilation[0] - g->pad[0];
}

#endif
#ifdef REAL

static void FN(copy_run)(const fl_conv *g, run r, const REAL *x, REAL *col)
{
    size_t size = sizeof *col;
    memset(col, 0, (size_t)r.from * size);
    if (r.from < r.to && g->stride[1] == 1)
        memcpy(col + r.from, x + r.first + r.from,
               (size_t)(r.to - r.from) * size);
    else
        for (int64_t o = r.from; o < r.to; o++)
            col[o] = x[r.first + o * g->stride[1]];
    memset(col + r.to, 0, (size_t)(g->ow - r.to) * size);
}

static void FN(add_run)(const fl_conv *g, run r, const REAL *col, REAL *x)
{
    for (int64_t o = r.from; o < r.to; o++)
        x[r.first + o * g->stride[1]] += col[o];
}

/* Copy every run of one group of an image from x to columns, or add the columns
 * back to x. */
static void FN(columns)(const fl_conv *g, bool back, REAL *x, REAL *col)
{
    for (int64_t c = 0; c < g->c / g->groups; c++, x += g->h * g->w)
        for (int64_t i = 0; i < g->kh; i++)
            for (int64_t j = 0; j < g->kw; j++) {
                run r = run_of(g, j);
                for (int64_t o = 0; o < g->oh; o++, col += g->ow) {
                    int64_t row = row_of(g, o, i);
                    bool inside = row >= 0 && row < g->h;
                    if (inside && back)
                        FN(add_run)(g, r, col, x + row * g->w);
                    else if (inside)
                        FN(copy_run)(g, r, x + row * g->w, col);
                    else if (!back)
                        memset(col, 0, (size_t)g->ow * sizeof *col);
                }
            }
}

static void FN(forward)(const fl_conv *g, const REAL *x, const REAL *w,
                        REAL *col, REAL *y)
{
    int64_t m = g->m / g->groups, p = g->oh * g->ow;
    int64_t k = g->c / g->groups * g->kh * g->kw;
    for (int64_t i = 0; i < g->n * g->groups; i++) {
        FN(columns)(g, false, (REAL *)x, col);
        FN(fl_gemm)
        (false, false, m, p, k, 1, w + i % g->groups * m * k, col, 0, y);
        x += g->c / g->groups * g->h * g->w;
        y += m * p;
    }
}

static void FN(by_filter)(const fl_conv *g, const REAL *x, const REAL *dy,
                          REAL *col, REAL *dw)
{
    int64_t m = g->m / g->groups, p = g->oh * g->ow;
    int64_t k = g->c / g->groups * g->kh * g->kw;
    memset(dw, 0, (size_t)(g->m * k) * sizeof *dw);
    for (int64_t i = 0; i < g->n * g->groups; i++) {
        FN(columns)(g, false, (REAL *)x, col);
        FN(fl_gemm)
        (false, true, m, k, p, 1, dy, col, 1, dw + i % g->groups * m * k);
        x += g->c / g->groups * g->h * g->w;
        dy += m * p;
    }
}

static void FN(by_input)(const fl_conv *g, const REAL *w, const REAL *dy,
                         REAL *col, REAL *dx)
{
    int64_t m = g->m / g->groups, p = g->oh * g->ow;
    int64_t k = g->c / g->groups * g->kh * g->kw;
    memset(dx, 0, (size_t)(g->n * g->c * g->h * g->w) * sizeof *dx);
    for (int64_t i = 0; i < g->n * g->groups; i++) {
        FN(fl_gemm)
        (true, false, k, p, m, 1, w + i % g->groups * m * k, dy, 0, col);
        FN(columns)(g, true, dx, col);
        dx += g->c / g->groups * g->h * g->w;
        dy += m * p;
    }
}

#else

void fl_conv_gemm(fl_dtype t, const fl_conv *g, const void *x, const void *w,
                  void *col, void *y)
{
    if (t == FL_F64)
        forward_f64(g, x, w, col, y);
    else
        forward_f32(g, x, w, col, y);
}

void fl_conv_gemm_grad(fl_dtype t, const fl_conv *g, const void *x,
                       const void *w, const void *dy, void *col,
                       fl_conv_grads out)
{
    if (out.filter && t == FL_F64)
        by_filter_f64(g, x, dy, col, out.filter);
    else if (out.filter)
        by_filter_f32(g, x, dy, col, out.filter);
    if (out.input && t == FL_F64)
        by_input_f64(g, w, dy, col, out.input);
    else if (out.input)
        by_input_f32(g, w, dy, col, out.input);
}

#endif
