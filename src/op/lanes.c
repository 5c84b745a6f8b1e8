/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - sums in a fixed order.
 *
 * Long sums are made of blocks, whose sums are added up as doubles: adding a
 * small float to a large one loses its low bits. */
#define FL_SELF "op/lanes.c"
#include "op/real.h"

#include <string.h>

#define BLOCK 2048 /* elements; 128 in each lane */
#ifdef REAL

static REAL FN(fold)(const REAL *lane)
{
    REAL sum[8];
    for (int j = 0; j < 8; j++)
        sum[j] = lane[j] + lane[j + 8];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
           ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

FL_CLONES static REAL FN(sum_block)(int64_t n, const REAL *x)
{
    REAL lane[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] += x[i + j];
    for (int j = 0; i < n; i++, j++)
        lane[j] += x[i];
    return FN(fold)(lane);
}

REAL FN(fl_sum)(int64_t n, const REAL *x)
{
    double sum = 0;
    if (n <= BLOCK)
        return FN(sum_block)(n, x);
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += FN(sum_block)(n - i < BLOCK ? n - i : BLOCK, x + i);
    return (REAL)sum;
}

FL_CLONES static REAL FN(dot_block)(int64_t n, const REAL *x, const REAL *y)
{
    REAL lane[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] += x[i + j] * y[i + j];
    for (int j = 0; i < n; i++, j++)
        lane[j] += x[i] * y[i];
    return FN(fold)(lane);
}

REAL FN(fl_dot)(int64_t n, const REAL *x, const REAL *y)
{
    double sum = 0;
    if (n <= BLOCK)
        return FN(dot_block)(n, x, y);
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += FN(dot_block)(n - i < BLOCK ? n - i : BLOCK, x + i, y + i);
    return (REAL)sum;
}

FL_CLONES static REAL FN(dot_from_block)(int64_t n, const REAL *x, REAL a,
                                         const REAL *y, REAL b)
{
    REAL lane[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] += (x[i + j] - a) * (y[i + j] - b);
    for (int j = 0; i < n; i++, j++)
        lane[j] += (x[i] - a) * (y[i] - b);
    return FN(fold)(lane);
}

REAL FN(fl_dot_from)(int64_t n, const REAL *x, REAL a, const REAL *y, REAL b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += FN(dot_from_block)(n - i < BLOCK ? n - i : BLOCK, x + i, a,
                                  y + i, b);
    return (REAL)sum;
}

FL_CLONES void FN(fl_add)(int64_t n, const REAL *x, REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

FL_CLONES void FN(fl_add_wide)(int64_t n, const REAL *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

void FN(fl_rows_clear)(int64_t n, REAL *sum, double *total)
{
    if (!sum)
        return;
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(total, 0, (size_t)n * sizeof *total);
}

void FN(fl_rows_added)(int64_t n, int64_t row, int64_t rows, REAL *sum,
                       double *total)
{
    const bool last = row + 1 == rows;
    if (!sum || rows <= FL_ROWS_BLOCK || (!last && (row + 1) % FL_ROWS_BLOCK))
        return;
    FN(fl_add_wide)(n, sum, total);
    for (int64_t i = 0; i < n; i++)
        sum[i] = last ? (REAL)total[i] : 0;
}

FL_CLONES void FN(fl_axpy)(int64_t n, REAL a, const REAL *x, REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

#endif
