/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - matrix products: oneDNN where it is fast, plain loops elsewhere.
 *
 * oneDNN reaches 90 % of a core's peak on square shapes but a tenth of it where
 * the output has a few columns. Those shapes, and f64, have loops of their own:
 *
 *     narrow   few columns: a row of C is a few dot products where op(A) has
 *              dense rows; columns of C grow side by side where it has not
 *     tiles    all else: four rows of two vectors over a packed panel of op(B)
 *
 * Each walks k in a fixed order, so the bits do not depend on the machine. */
#define FL_SELF "kernel/gemm.c"
#include "op/real.h"

#ifndef FL_OPS_GEMM_C
#define FL_OPS_GEMM_C

#include "kernel/dnn.h"
#include "kernel/gemm.h"

#include <string.h>

enum {
    LANES = 16,  /* elements of a vector */
    FEW = 4,     /* largest number of columns of a narrow product */
    DEPTH = 512, /* terms of a narrow product that are added at a time */
    ROWS = 4,    /* rows of a tile; it is two vectors wide */
    TERMS = 64,  /* rows and columns of a packed panel */
    WIDTH = 128,
    SMALL = 2048, /* with fewer multiplications a call of oneDNN is slower */
};

#define GEMM   FN(gemm)
#define VIEW   FN(view)
#define VEC    FN(vec)
#define INLINE static inline __attribute__((always_inline))

/* The sum of sixteen lanes, in the order of fl_sum. */
#define FL_FOLD(v)                                                             \
    ({                                                                         \
        __auto_type h =                                                        \
            __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +            \
            __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);       \
        __auto_type q = __builtin_shufflevector(h, h, 0, 1, 2, 3) +            \
                        __builtin_shufflevector(h, h, 4, 5, 6, 7);             \
        (q[0] + q[2]) + (q[1] + q[3]);                                         \
    })

/* A constant number of columns keeps the sums in registers. */
#define FL_BY_COLUMNS(fn)                                                      \
    (g->n == 1   ? FN(fn)(g, 1, bt)                                            \
     : g->n == 2 ? FN(fn)(g, 2, bt)                                            \
     : g->n == 3 ? FN(fn)(g, 3, bt)                                            \
                 : FN(fn)(g, FEW, bt))

#endif
#ifdef REAL

/* Sixteen adjacent elements, which need not be aligned. */
typedef REAL VEC __attribute__((vector_size(LANES * sizeof(REAL)),
                                aligned(sizeof(REAL)), may_alias));

/* op(M)[i,j] is at[i * row + j * col]; one of the strides is 1. */
typedef struct VIEW {
    const REAL *at;
    int64_t row, col;
} VIEW;

/* The arguments of one product. `keep` is beta. */
typedef struct GEMM {
    int64_t m, n, k;
    REAL alpha;
    VIEW a, b;
    REAL keep;
    REAL *c;
} GEMM;

/* c = alpha * sum + keep * c. */
static inline void FN(put)(const GEMM *g, REAL sum, REAL *c)
{
    *c = g->keep == 0 ? g->alpha * sum : g->alpha * sum + g->keep * *c;
}

/* --- Narrow ------------------------------------------------------------ */

/* Rows of op(A) times columns of op(B). The columns are in `bt`, padded with
 * zeros. */
INLINE void FN(dots_of)(const GEMM *g, int n, const REAL (*bt)[DEPTH])
{
    int64_t tail = g->k % LANES, whole = g->k - tail;
    for (int64_t i = 0; i < g->m; i++) {
        const REAL *a = g->a.at + i * g->a.row;
        VEC sum[FEW], last = {0};
        for (int j = 0; j < n; j++)
            sum[j] = (VEC){0};
        for (int64_t p = 0; p < whole; p += LANES)
            for (int j = 0; j < n; j++)
                sum[j] += *(const VEC *)(a + p) * *(const VEC *)(bt[j] + p);
        if (tail)
            memcpy(&last, a + whole, (size_t)tail * sizeof *a);
        for (int j = 0; tail && j < n; j++)
            sum[j] += last * *(const VEC *)(bt[j] + whole);
        for (int j = 0; j < n; j++)
            FN(put)(g, FL_FOLD(sum[j]), &g->c[i * g->n + j]);
    }
}

/* Rows [i, i + 2 * LANES) of C. */
INLINE void FN(tall)(const GEMM *g, int n, int64_t i, const REAL (*bt)[DEPTH])
{
    VEC sum[2][FEW];
    for (int j = 0; j < n; j++)
        sum[0][j] = sum[1][j] = (VEC){0};
    for (int64_t p = 0; p < g->k; p++) {
        const REAL *a = g->a.at + p * g->a.col + i;
        for (int j = 0; j < n; j++) {
            sum[0][j] += *(const VEC *)a * bt[j][p];
            sum[1][j] += *(const VEC *)(a + LANES) * bt[j][p];
        }
    }
    for (int h = 0; h < 2; h++) {
        REAL lane[FEW][LANES];
        memcpy(lane, sum[h], (size_t)n * sizeof *lane);
        REAL *c = &g->c[(i + h * LANES) * n];
        for (int l = 0; l < LANES; l++)
            for (int j = 0; j < n; j++)
                FN(put)(g, lane[j][l], &c[l * n + j]);
    }
}

/* Rows of C side by side, as op(A) has them. */
INLINE void FN(columns_of)(const GEMM *g, int n, const REAL (*bt)[DEPTH])
{
    int64_t i = 0;
    for (; i + 2 * LANES <= g->m; i += 2 * LANES)
        FN(tall)(g, n, i, bt);
    for (; i < g->m; i++)
        for (int j = 0; j < n; j++) {
            REAL sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += g->a.at[p * g->a.col + i] * bt[j][p];
            FN(put)(g, sum, &g->c[i * g->n + j]);
        }
}

FL_CLONES static void FN(dots)(const GEMM *g, const REAL (*bt)[DEPTH])
{
    FL_BY_COLUMNS(dots_of);
}

FL_CLONES static void FN(columns)(const GEMM *g, const REAL (*bt)[DEPTH])
{
    FL_BY_COLUMNS(columns_of);
}

/* Columns of `from`, each with zeros up to a whole vector. */
static void FN(pack_narrow)(VIEW from, int64_t k, int64_t n, REAL (*bt)[DEPTH])
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t p = 0; p < k; p++)
            bt[j][p] = from.at[p * from.row + j * from.col];
        for (int64_t p = k; p % LANES; p++)
            bt[j][p] = 0;
    }
}

static void FN(narrow)(const GEMM *g)
{
    REAL bt[FEW][DEPTH];
    GEMM part = *g;
    for (int64_t p = 0; p < g->k; p += DEPTH) {
        part.k = g->k - p < DEPTH ? g->k - p : DEPTH;
        part.a.at = g->a.at + p * g->a.col;
        VIEW from = g->b;
        from.at += p * g->b.row;
        FN(pack_narrow)(from, part.k, g->n, bt);
        if (g->a.col == 1)
            FN(dots)(&part, bt);
        else
            FN(columns)(&part, bt);
        part.keep = 1;
    }
}

/* --- Tiles ------------------------------------------------------------- */

/* `rows` rows of C from row i on, columns [j, j + 2 * LANES) of a panel of
 * op(B) that begins at column `left` of C. */
INLINE void FN(tile)(const GEMM *g, int rows, int64_t i, int64_t left,
                     int64_t j, const REAL (*b)[WIDTH])
{
    VEC sum[ROWS][2];
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = (VEC){0};
    for (int64_t p = 0; p < g->k; p++)
        for (int r = 0; r < rows; r++) {
            REAL a = g->a.at[(i + r) * g->a.row + p * g->a.col];
            sum[r][0] += a * *(const VEC *)(b[p] + j);
            sum[r][1] += a * *(const VEC *)(b[p] + j + LANES);
        }
    for (int r = 0; r < rows; r++) {
        REAL *c = g->c + (i + r) * g->n + left + j;
        REAL lane[2 * LANES];
        memcpy(lane, sum[r], sizeof lane);
        int64_t end = g->n - left - j;
        if (end >= 2 * LANES)
            for (int l = 0; l < 2 * LANES; l++)
                FN(put)(g, lane[l], &c[l]);
        else
            for (int l = 0; l < end; l++)
                FN(put)(g, lane[l], &c[l]);
    }
}

FL_CLONES static void FN(panel)(const GEMM *g, int64_t left, int64_t width,
                                const REAL (*b)[WIDTH])
{
    int64_t i = 0;
    for (; i + ROWS <= g->m; i += ROWS)
        for (int64_t j = 0; j < width; j += 2 * LANES)
            FN(tile)(g, ROWS, i, left, j, b);
    for (; i < g->m; i++)
        for (int64_t j = 0; j < width; j += 2 * LANES)
            FN(tile)(g, 1, i, left, j, b);
}

/* Rows [0, k) and columns [0, width) of `from`, zeros up to a whole tile. */
static void FN(pack)(VIEW from, int64_t k, int64_t width, REAL (*b)[WIDTH])
{
    int64_t whole = (width + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
    for (int64_t p = 0; p < k; p++) {
        for (int64_t j = 0; j < width; j++)
            b[p][j] = from.at[p * from.row + j * from.col];
        for (int64_t j = width; j < whole; j++)
            b[p][j] = 0;
    }
}

static void FN(tiles)(const GEMM *g)
{
    REAL b[TERMS][WIDTH];
    for (int64_t left = 0; left < g->n; left += WIDTH) {
        int64_t width = g->n - left < WIDTH ? g->n - left : WIDTH;
        GEMM part = *g;
        for (int64_t p = 0; p < g->k; p += TERMS) {
            part.k = g->k - p < TERMS ? g->k - p : TERMS;
            part.a.at = g->a.at + p * g->a.col;
            VIEW from = g->b;
            from.at += p * g->b.row + left * g->b.col;
            FN(pack)(from, part.k, width, b);
            FN(panel)(&part, left, width, b);
            part.keep = 1;
        }
    }
}

/* --- Any --------------------------------------------------------------- */

/* No terms: C = beta * C. */
static void FN(keep_only)(int64_t n, REAL beta, REAL *c)
{
    for (int64_t i = 0; i < n; i++)
        c[i] = beta == 0 ? 0 : beta * c[i];
}

static GEMM FN(product)(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                        REAL alpha, const REAL *a, const REAL *b, REAL beta,
                        REAL *c)
{
    return (GEMM){
        .m = m,
        .n = n,
        .k = k,
        .alpha = alpha,
        .a = {a, ta ? 1 : k, ta ? m : 1},
        .b = {b, tb ? 1 : n, tb ? k : 1},
        .keep = beta,
        .c = c,
    };
}

#else

void fl_gemm_f64(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                 double alpha, const double *a, const double *b, double beta,
                 double *c)
{
    gemm_f64 g = product_f64(ta, tb, m, n, k, alpha, a, b, beta, c);
    if (m * n * k == 0)
        keep_only_f64(m * n, beta, c);
    else if (n <= FEW)
        narrow_f64(&g);
    else
        tiles_f64(&g);
}

void fl_gemm_f32(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *a, const float *b, float beta, float *c)
{
    gemm_f32 g = product_f32(ta, tb, m, n, k, alpha, a, b, beta, c);
    if (m * n * k == 0) {
        keep_only_f32(m * n, beta, c);
    } else if (n > 1 && n <= FEW) { /* oneDNN is fast with one column */
        narrow_f32(&g);
    } else if (n > FEW && m * n * k <= SMALL) {
        tiles_f32(&g);
    } else {
        sigset_t was;
        fl_dnn_enter(&was);
        dnnl_status_t status =
            dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a,
                       ta ? m : k, b, tb ? k : n, beta, c, n);
        fl_dnn_leave(&was);
        if (status != dnnl_success) /* oneDNN had too little memory */
            tiles_f32(&g);
    }
}

void fl_gemm(fl_dtype t, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
             double alpha, const void *a, const void *b, double beta, void *c)
{
    if (t == FL_F64)
        fl_gemm_f64(ta, tb, m, n, k, alpha, a, b, beta, c);
    else
        fl_gemm_f32(ta, tb, m, n, k, (float)alpha, a, b, (float)beta, c);
}

#endif
