/* SPDX-License-Identifier: Apache-2.0 */
#include "op/lanes.h"

#include "base/test.h"
#include "tensor/tensor.h"

enum {
    MOST = 100
};

/* Small whole numbers: every order of adding gives the same exact sum. */
static void sums_are_exact_at_every_length(void)
{
    float x[MOST], y[MOST];
    double wide_x[MOST], wide_y[MOST];
    for (int i = 0; i < MOST; i++) {
        wide_x[i] = x[i] = (float)(i % 7 - 3);
        wide_y[i] = y[i] = (float)(i % 5 - 1);
    }
    int sum = 0, dot = 0, from = 0;
    for (int n = 0; n <= MOST; n++) {
        CHECK(fl_sum_f32(n, x) == (float)sum);
        CHECK(fl_sum_f64(n, wide_x) == sum);
        CHECK(fl_dot_f32(n, x, y) == (float)dot);
        CHECK(fl_dot_f64(n, wide_x, wide_y) == dot);
        CHECK(fl_dot_from_f32(n, x, 2, y, -1) == (float)from);
        CHECK(fl_dot_from_f64(n, wide_x, 2, wide_y, -1) == from);
        if (n < MOST) {
            sum += n % 7 - 3;
            dot += (n % 7 - 3) * (n % 5 - 1);
            from += (n % 7 - 5) * (n % 5);
        }
    }
}

/* The order is part of the contract: sixteen lanes, then halves. */
static void the_order_is_fixed(void)
{
    float x[40], lane[16] = {0};
    for (int i = 0; i < 40; i++)
        x[i] = 1.0f / (float)(i + 3);
    for (int i = 0; i < 40; i++)
        lane[i % 16] += x[i];
    for (int j = 0; j < 8; j++)
        lane[j] += lane[j + 8];
    float want = ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
                 ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    CHECK(fl_sum_f32(40, x) == want);
}

/* Each float is added to a sum that is no larger than a block's. */
static void long_sums_keep_fractions(void)
{
    enum {
        LONG = 3000017
    };
    const fl_shape shape = {1, {LONG}};
    fl_tensor t = {0};
    CHECK_OK(fl_tensor_resize(&t, FL_F32, &shape));
    float *x = t.data;
    for (int i = 0; i < LONG; i++)
        x[i] = 0.99444f;
    CHECK_NEAR(fl_sum_f32(LONG, x) / LONG, 0.99444, 1e-5);
    CHECK_NEAR(fl_dot_f32(LONG, x, x) / LONG, 0.99444 * 0.99444, 1e-5);
    CHECK_NEAR(fl_dot_from_f32(LONG, x, 0, x, 0) / LONG, 0.99444 * 0.99444,
               1e-5);
    fl_tensor_fini(&t);
}

static void vectors_are_added(void)
{
    float x[MOST], y[MOST];
    double wide_x[MOST], wide_y[MOST];
    for (int i = 0; i < MOST; i++) {
        wide_x[i] = x[i] = (float)i;
        wide_y[i] = y[i] = 2;
    }
    fl_add_f32(MOST - 1, x, y);
    fl_add_f64(MOST - 1, wide_x, wide_y);
    fl_axpy_f32(MOST - 1, -3, x, y);
    fl_axpy_f64(MOST - 1, -3, wide_x, wide_y);
    for (int i = 0; i < MOST - 1; i++) {
        CHECK(y[i] == (float)(2 - 2 * i));
        CHECK(wide_y[i] == 2 - 2 * i);
    }
    CHECK(y[MOST - 1] == 2 && wide_y[MOST - 1] == 2);
}

const fl_test fl_tests[] = {
    {"sums are exact at every length", sums_are_exact_at_every_length},
    {"the order of a sum is fixed", the_order_is_fixed},
    {"long sums keep fractions", long_sums_keep_fractions},
    {"vectors are added", vectors_are_added},
    {0},
};
