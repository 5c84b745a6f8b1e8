/* SPDX-License-Identifier: Apache-2.0 */
/* Every loop of gemm.c against the sum written down, over shapes that take each
 * of them, whole vectors and tails. */
#include "base/mem.h"
#include "base/test.h"
#include "kernel/gemm.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

typedef struct shape {
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    {20, 1, 13},    {13, 1, 20},   {20, 13, 1},   {1, 1, 1},    {1, 40, 30},
    {5, 2, 16},     {7, 3, 37},    {70, 2, 600},  {33, 4, 9},   {64, 4, 1100},
    {4, 5, 6},      {5, 33, 7},    {3, 300, 2},   {40, 40, 40}, {9, 130, 70},
    {100, 64, 100}, {17, 257, 65}, {31, 32, 129}, {2, 8, 2000},
};

/* Small whole numbers: every sum is exact in both types. */
static double number(int64_t i)
{
    return (double)(i * 7919 % 23) - 11;
}

static double *numbers(int64_t n)
{
    double *x = fl_mem_alloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = number(i);
    return x;
}

static double wanted(bool ta, bool tb, shape s, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t p = 0; p < s.k; p++)
        sum += number(ta ? p * s.m + i : i * s.k + p) *
               number(tb ? j * s.k + p : p * s.n + j);
    return sum;
}

static float *narrowed(int64_t n, const double *x)
{
    float *y = fl_mem_alloc((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x[i];
    return y;
}

static void check_product(bool ta, bool tb, shape s, double alpha, double beta)
{
    double *a = numbers(s.m * s.k), *b = numbers(s.k * s.n);
    double *c = numbers(s.m * s.n);
    float *fa = narrowed(s.m * s.k, a), *fb = narrowed(s.k * s.n, b);
    float *fc = narrowed(s.m * s.n, c);
    if (beta == 0) /* what C held must not matter */
        c[0] = fc[0] = NAN;
    fl_gemm_f64(ta, tb, s.m, s.n, s.k, alpha, a, b, beta, c);
    fl_gemm_f32(ta, tb, s.m, s.n, s.k, (float)alpha, fa, fb, (float)beta, fc);
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++) {
            int64_t at = i * s.n + j;
            double want = alpha * wanted(ta, tb, s, i, j) + beta * number(at);
            CHECK_NEAR(c[at], want, 0);
            CHECK_NEAR(fc[at], want, 0);
        }
    void *all[] = {a, b, c, fa, fb, fc};
    for (int i = 0; i < 6; i++)
        fl_mem_free(all[i]);
}

static void multiplies_every_shape(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < 4; t++)
            check_product(t & 1, t & 2, shapes[i], 1, 0);
}

static void scales_and_adds(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < 4; t++)
            check_product(t & 1, t & 2, shapes[i], -0.5, 2);
}

static void no_terms_leave_beta_c(void)
{
    float c[] = {1, NAN};
    fl_gemm_f32(false, false, 1, 1, 0, 1, NULL, NULL, 3, c);
    fl_gemm_f32(false, false, 1, 1, 0, 1, NULL, NULL, 0, c + 1);
    CHECK_NEAR(c[0], 3, 0);
    CHECK_NEAR(c[1], 0, 0);
    double d[] = {2};
    fl_gemm_f64(false, false, 1, 1, 0, 1, NULL, NULL, 1, d);
    CHECK_NEAR(d[0], 2, 0);
}

static void no_rows_touch_nothing(void)
{
    float b[] = {1, 2};
    fl_gemm_f32(false, false, 0, 2, 1, 1, NULL, b, 0, NULL);
    fl_gemm_f32(true, true, 2, 0, 1, 1, b, NULL, 0, NULL);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    signals++;
}

/* oneDNN moves the stack pointer: a handler in the midst of a product would
 * write over the heap, which the allocator notices at the next free. */
static void bears_signals(void)
{
    enum {
        N = 256
    };
    static float a[N * N], c[N * N];
    struct sigaction was, mine = {.sa_handler = count_signal};
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0}};
    for (int i = 0; i < N * N; i++)
        a[i] = (float)(i % 7);
    CHECK_INT(sigaction(SIGALRM, &mine, &was), 0);
    CHECK_INT(setitimer(ITIMER_REAL, &often, NULL), 0);
    signals = 0;
    for (int i = 0; i < 20 || signals < 100; i++)
        fl_gemm_f32(false, false, N, N, N, 1, a, a, 0, c);
    CHECK_INT(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK_INT(sigaction(SIGALRM, &was, NULL), 0);
    CHECK(signals >= 100);
}

const fl_test fl_tests[] = {
    {"gemm multiplies every shape and transpose", multiplies_every_shape},
    {"gemm scales by alpha and adds beta * C", scales_and_adds},
    {"gemm without terms leaves beta * C", no_terms_leave_beta_c},
    {"gemm without rows touches nothing", no_rows_touch_nothing},
    {"a product bears signals", bears_signals},
    {0},
};
