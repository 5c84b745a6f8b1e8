/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - fast sums in a fixed order.
 *
 * The compiler may not reorder a plain loop over floats, so it does not
 * vectorise it. These functions keep sixteen partial sums and add them up in
 * one fixed order, so that the bits are the same on every processor. Long sums
 * are made of blocks, so that the sum of millions of floats is as accurate as
 * that of a thousand. */
#ifndef FL_OP_LANES_H
#define FL_OP_LANES_H

#include <stdint.h>

float fl_sum_f32(int64_t n, const float *x);
double fl_sum_f64(int64_t n, const double *x);
float fl_dot_f32(int64_t n, const float *x, const float *y);
double fl_dot_f64(int64_t n, const double *x, const double *y);

/* The sum of (x - a) * (y - b). */
float fl_dot_from_f32(int64_t n, const float *x, float a, const float *y,
                      float b);
double fl_dot_from_f64(int64_t n, const double *x, double a, const double *y,
                       double b);

/* y += x, element by element. */
void fl_add_f32(int64_t n, const float *x, float *y);
void fl_add_f64(int64_t n, const double *x, double *y);

/* The same into doubles, for sums of many x. */
void fl_add_wide_f32(int64_t n, const float *x, double *y);
void fl_add_wide_f64(int64_t n, const double *x, double *y);

/* Sum many rows of n elements: clear both arrays, then add each row to `sum`,
 * and after each call fl_rows_added with its number `row` of `rows`. It moves
 * the partial sums to `total` now and then; after the last row, `sum` is the
 * whole sum. Sums of up to 256 rows have the bits of a plain loop. sum NULL:
 * nothing is done. */
enum {
    FL_ROWS_BLOCK = 256 /* rows that are added before their sum is moved */
};
void fl_rows_clear_f32(int64_t n, float *sum, double *total);
void fl_rows_clear_f64(int64_t n, double *sum, double *total);
void fl_rows_added_f32(int64_t n, int64_t row, int64_t rows, float *sum,
                       double *total);
void fl_rows_added_f64(int64_t n, int64_t row, int64_t rows, double *sum,
                       double *total);

/* y += a * x. */
void fl_axpy_f32(int64_t n, float a, const float *x, float *y);
void fl_axpy_f64(int64_t n, double a, const double *x, double *y);

#endif
