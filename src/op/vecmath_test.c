/* SPDX-License-Identifier: Apache-2.0 */
#include "op/vecmath.h"

#include "base/test.h"

typedef float (*fn_f32)(float);
typedef double (*fn_f64)(double);

static float exp_f32(float x)
{
    return fl_exp_f32(x);
}

static float log_f32(float x)
{
    return fl_log_f32(x);
}

static float sigmoid_f32(float x)
{
    return fl_sigmoid_f32(x);
}

static float tanh_f32(float x)
{
    return fl_tanh_f32(x);
}

static double sigmoid_f64(double x)
{
    return fl_sigmoid_f64(x);
}

static bool close_enough(double got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    /* Below the normal numbers a float has a fixed step. */
    return fabs(got - want) <= 3e-7 * fabs(want) + 0x1p-149;
}

/* Every 997th float from `first` to `last` in bits, which is all scales. */
static void sweep(fn_f32 f, fn_f64 true_f, float first, float last)
{
    int64_t end = fl_bits_of(last);
    for (int64_t bits = fl_bits_of(first); bits <= end; bits += 997) {
        float x = fl_float_of((int32_t)bits);
        double want = true_f((double)x);
        if (fabs(want) > 3.4028235e38)
            want = want > 0 ? INFINITY : -INFINITY;
        if (!close_enough(f(x), want)) {
            print_error("at %.9g: %.9g, libm says %.9g\n", x, f(x), want);
            CHECK(!"within 3e-7 of libm");
        }
    }
}

static void exp_is_right(void)
{
    sweep(exp_f32, exp, 0.0f, INFINITY);
    sweep(exp_f32, exp, -0.0f, -INFINITY);
    CHECK(fl_exp_f32(0.0f) == 1.0f);
    CHECK(fl_exp_f32(-0.0f) == 1.0f);
    CHECK(fl_exp_f32(INFINITY) == INFINITY);
    CHECK(fl_exp_f32(-INFINITY) == 0.0f);
    CHECK(isnan(fl_exp_f32(NAN)));
    CHECK(fl_exp_f32(88.722f) < INFINITY);
    CHECK(fl_exp_f32(88.723f) > 3.4e38f);
    CHECK(fl_exp_f32(-103.0f) > 0.0f);
}

static void log_is_right(void)
{
    sweep(log_f32, log, 0.0f, INFINITY);
    CHECK(fl_log_f32(1.0f) == 0.0f);
    CHECK(fl_log_f32(0.0f) == -INFINITY);
    CHECK(fl_log_f32(-0.0f) == -INFINITY);
    CHECK(fl_log_f32(INFINITY) == INFINITY);
    CHECK(isnan(fl_log_f32(-1.0f)));
    CHECK(isnan(fl_log_f32(-1e-40f)));
    CHECK(isnan(fl_log_f32(-INFINITY)));
    CHECK(isnan(fl_log_f32(NAN)));
}

static void sigmoid_is_right(void)
{
    sweep(sigmoid_f32, sigmoid_f64, 0.0f, INFINITY);
    sweep(sigmoid_f32, sigmoid_f64, -0.0f, -87.0f);
    CHECK(fl_sigmoid_f32(0.0f) == 0.5f);
    CHECK(fl_sigmoid_f32(-100.0f) == 0.0f);
    CHECK(fl_sigmoid_f32(INFINITY) == 1.0f);
    CHECK(fl_sigmoid_f32(-INFINITY) == 0.0f);
    CHECK(isnan(fl_sigmoid_f32(NAN)));
}

static void tanh_is_right(void)
{
    sweep(tanh_f32, tanh, 0.0f, INFINITY);
    sweep(tanh_f32, tanh, -0.0f, -INFINITY);
    CHECK(fl_tanh_f32(0.0f) == 0.0f);
    CHECK(signbit(fl_tanh_f32(-0.0f)));
    CHECK(fl_tanh_f32(INFINITY) == 1.0f);
    CHECK(fl_tanh_f32(-INFINITY) == -1.0f);
    CHECK(isnan(fl_tanh_f32(NAN)));
}

#ifdef __x86_64__

enum {
    N = 1003
};

/* One text, compiled for a kind of machine: vectors of 4, 8 and 16. */
#define VECTOR_LOOP(name, arch)                                                \
    __attribute__((target(arch))) static void name(const float *x, float *y)   \
    {                                                                          \
        for (int i = 0; i < N; i++)                                            \
            y[i] = fl_exp_f32(x[i]) + fl_log_f32(x[i] * x[i]) +                \
                   fl_tanh_f32(x[i]) + fl_sigmoid_f32(x[i]);                   \
    }
VECTOR_LOOP(loop_v2, "arch=x86-64-v2")
VECTOR_LOOP(loop_v3, "arch=x86-64-v3")
VECTOR_LOOP(loop_v4, "arch=x86-64-v4")

static void every_machine_agrees(void)
{
    float x[N], want[N], got[N];
    for (int i = 0; i < N; i++)
        x[i] = ((float)i - N / 2.0f) * 0.037f;
    for (int i = 0; i < N; i++)
        want[i] = exp_f32(x[i]) + log_f32(x[i] * x[i]) + tanh_f32(x[i]) +
                  sigmoid_f32(x[i]);
    loop_v2(x, got);
    CHECK(!memcmp(got, want, sizeof got));
    if (__builtin_cpu_supports("avx2")) {
        loop_v3(x, got);
        CHECK(!memcmp(got, want, sizeof got));
    }
    if (__builtin_cpu_supports("avx512vl")) {
        loop_v4(x, got);
        CHECK(!memcmp(got, want, sizeof got));
    }
}

#else

static void every_machine_agrees(void)
{
    fl_test_skip("there is one kind of machine here");
}

#endif

const fl_test fl_tests[] = {
    {"exp is within 3e-7 of libm at all scales", exp_is_right},
    {"log is within 3e-7 of libm at all scales", log_is_right},
    {"sigmoid is within 3e-7 of libm at all scales", sigmoid_is_right},
    {"tanh is within 3e-7 of libm at all scales", tanh_is_right},
    {"vectors of every width give the same bits", every_machine_agrees},
    {0},
};
