/* SPDX-License-Identifier: Apache-2.0 */
/* conv_last.c - gradients of a convolution, its output with channels last.
 *
 * For one image, with P = oh * ow places and K = kh * kw * c weights a filter:
 *
 *     rows[P,K]        what each place of the output meets, in the order of a
 *                      filter with channels last: runs of kw * c elements
 *     Filter@GRAD[m,K] = Output@GRAD[P,m]^T rows, summed over images
 *     Input@GRAD       = Output@GRAD Filter[m,K], each added where it came from
 *
 * Strides and dilations are 1. One image's rows stay in the cache. oneDNN pads
 * channels to a multiple of 16, so this code is faster where much would be
 * padding. */
#include "kernel/conv.h"

#include "base/clones.h"
#include "kernel/gemm.h"

#include <string.h>

enum {
    LEAST = 8,  /* channels; oneDNN has special kernels for fewer channels */
    FILLED = 16 /* oneDNN pads channels to a multiple of this */
};

bool fl_conv_last_pays(const fl_conv *g)
{
    return g->groups == 1 && g->c > LEAST && g->c % FILLED &&
           g->stride[0] == 1 && g->stride[1] == 1 && g->dilation[0] == 1 &&
           g->dilation[1] == 1;
}

/* --- channels last and first --- */

enum {
    TILE = 8 /* rows and columns of a block that is transposed at once */
};

typedef float vec __attribute__((vector_size(TILE * sizeof(float))));

/* The upper right and lower left quarters of each square change places. */
#define SWAP(a, b, low, high)                                                  \
    do {                                                                       \
        const vec x = a, y = b;                                                \
        a = __builtin_shufflevector(x, y, low);                                \
        b = __builtin_shufflevector(x, y, high);                               \
    } while (0)
#define LOW4  0, 1, 2, 3, 8, 9, 10, 11
#define HIGH4 4, 5, 6, 7, 12, 13, 14, 15
#define LOW2  0, 1, 8, 9, 4, 5, 12, 13
#define HIGH2 2, 3, 10, 11, 6, 7, 14, 15
#define LOW1  0, 8, 2, 10, 4, 12, 6, 14
#define HIGH1 1, 9, 3, 11, 5, 13, 7, 15

static inline __attribute__((always_inline)) void
turn_tile(int64_t rows, int64_t columns, const float *from, float *to)
{
    vec a[TILE];
    for (int i = 0; i < TILE; i++)
        memcpy(&a[i], from + i * columns, sizeof a[i]);
    for (int i = 0; i < 4; i++)
        SWAP(a[i], a[i + 4], LOW4, HIGH4);
    for (int i = 0; i < TILE; i += i % 4 == 1 ? 3 : 1)
        SWAP(a[i], a[i + 2], LOW2, HIGH2);
    for (int i = 0; i < TILE; i += 2)
        SWAP(a[i], a[i + 1], LOW1, HIGH1);
    for (int i = 0; i < TILE; i++)
        memcpy(to + i * rows, &a[i], sizeof a[i]);
}

FL_CLONES void fl_turn_f32(int64_t rows, int64_t columns, const float *from,
                           float *to)
{
    const int64_t whole_rows = rows / TILE * TILE;
    const int64_t whole_columns = columns / TILE * TILE;
    for (int64_t j = 0; j < whole_columns; j += TILE)
        for (int64_t i = 0; i < whole_rows; i += TILE)
            turn_tile(rows, columns, from + i * columns + j, to + j * rows + i);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; i++)
            to[j * rows + i] = from[i * columns + j];
}

/* --- rows of windows --- */

/* The part of filter row i that lies within the input, for one position of the
 * output. */
typedef struct run {
    int64_t n;      /* elements */
    int64_t x, row; /* offset of the first element in the image, and in the row
                       of the position */
} run;

static inline run run_of(const fl_conv *g, int64_t place, int64_t i)
{
    const int64_t y = place / g->ow + i - g->pad[0];
    const int64_t first = place % g->ow - g->pad[1];
    const int64_t from = first < 0 ? -first : 0;
    const int64_t to = g->w - first < g->kw ? g->w - first : g->kw;
    if (y < 0 || y >= g->h || from >= to)
        return (run){0};
    return (run){(to - from) * g->c, (y * g->w + first + from) * g->c,
                 (i * g->kw + from) * g->c};
}

static void fill_rows(const fl_conv *g, const float *x, float *rows)
{
    const int64_t places = g->oh * g->ow, k = g->kh * g->kw * g->c;
    if (g->pad[0] || g->pad[1])
        memset(rows, 0, (size_t)(places * k) * sizeof *rows);
    for (int64_t p = 0; p < places; p++, rows += k)
        for (int64_t i = 0; i < g->kh; i++) {
            const run r = run_of(g, p, i);
            memcpy(rows + r.row, x + r.x, (size_t)r.n * sizeof *x);
        }
}

FL_CLONES static void add_rows(const fl_conv *g, const float *rows, float *x)
{
    const int64_t places = g->oh * g->ow, k = g->kh * g->kw * g->c;
    memset(x, 0, (size_t)(g->c * g->h * g->w) * sizeof *x);
    for (int64_t p = 0; p < places; p++, rows += k)
        for (int64_t i = 0; i < g->kh; i++) {
            const run r = run_of(g, p, i);
            for (int64_t j = 0; j < r.n; j++)
                x[r.x + j] += rows[r.row + j];
        }
}

/* Parts of the workspace. */
typedef struct space {
    float *rows;   /* [P,K] */
    float *filter; /* [m,K], or its gradient */
    float *image;  /* [h,w,c], or its gradient */
} space;

static void by_filter(const fl_conv *g, const float *x, const float *dy,
                      const space *s, float *dw)
{
    const int64_t places = g->oh * g->ow, window = g->kh * g->kw;
    const int64_t k = window * g->c, image = g->c * g->h * g->w;
    for (int64_t i = 0; i < g->n; i++) {
        fl_turn_f32(g->c, g->h * g->w, x + i * image, s->image);
        fill_rows(g, s->image, s->rows);
        fl_gemm_f32(true, false, g->m, k, places, 1, dy + i * places * g->m,
                    s->rows, i ? 1 : 0, s->filter);
    }
    for (int64_t i = 0; i < g->m; i++)
        fl_turn_f32(window, g->c, s->filter + i * k, dw + i * k);
}

static void by_input(const fl_conv *g, const float *w, const float *dy,
                     const space *s, float *dx)
{
    const int64_t places = g->oh * g->ow, window = g->kh * g->kw;
    const int64_t k = window * g->c, image = g->c * g->h * g->w;
    for (int64_t i = 0; i < g->m; i++)
        fl_turn_f32(g->c, window, w + i * k, s->filter + i * k);
    for (int64_t i = 0; i < g->n; i++) {
        fl_gemm_f32(false, false, places, k, g->m, 1, dy + i * places * g->m,
                    s->filter, 0, s->rows);
        add_rows(g, s->rows, s->image);
        fl_turn_f32(g->h * g->w, g->c, s->image, dx + i * image);
    }
}

fl_err fl_conv_last_grad(fl_call *c, const fl_conv *g, const float *x,
                         const float *w, const float *dy, fl_conv_grads out)
{
    const int64_t k = g->kh * g->kw * g->c, rows = g->oh * g->ow * k;
    const int64_t all = rows + g->m * k + g->c * g->h * g->w;
    float *at = fl_workspace_get(c, (size_t)all * sizeof *at);
    if (!at)
        return FL_ENOMEM;
    const space s = {at, at + rows, at + rows + g->m * k};
    if (out.filter)
        by_filter(g, x, dy, &s, out.filter);
    if (out.input)
        by_input(g, w, dy, &s, out.input);
    return FL_OK;
}
