/* SPDX-License-Identifier: Apache-2.0 */
/* vecmath.h - exp, log, tanh and sigmoid that a compiler can vectorise.
 *
 * The float versions are polynomials without branches or calls: inside a
 * FL_CLONES loop they become vector code, and the same bits come out whatever
 * the width of the vectors. Their error stays below 3e-7 of the true value.
 * Infinities, zeros and NaN come out as in libm; so do results too small to be
 * normal, except sigmoid's, which may become 0. The double versions are libm's.
 */
#ifndef FL_OP_VECMATH_H
#define FL_OP_VECMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FL_VECMATH static inline __attribute__((always_inline))

FL_VECMATH int32_t fl_bits_of(float x)
{
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

FL_VECMATH float fl_float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FL_VECMATH float fl_exp_f32(float x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: the sum is a whole number */
    x = x > 89.0f ? 89.0f : x;       /* infinity already */
    x = x < -104.0f ? -104.0f : x;   /* zero already */
    float shifted = x * 1.44269504089f + round;
    int32_t n = fl_bits_of(shifted) - fl_bits_of(round);
    float k = shifted - round;
    float r = x - k * 0.693359375f + k * 2.12194440e-4f; /* x - k * log 2 */
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    int32_t half = n >> 1; /* 2^n in two steps: n may pass the exponent */
    p *= fl_float_of((int32_t)((uint32_t)(half + 127) << 23));
    return p * fl_float_of((int32_t)((uint32_t)(n - half + 127) << 23));
}

/* log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], without its f itself. */
FL_VECMATH float fl_log_tail_f32(float f)
{
    float p = 7.0376836292e-2f, square = f * f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    return p * f * square - 0.5f * square;
}

FL_VECMATH float fl_log_f32(float x)
{
    const uint32_t root = 0x3f3504f3; /* bits of sqrt(1/2) */
    int small = x < 0x1p-126f;
    float big = x * (small ? 0x1p23f : 1.0f);
    int32_t bits = (int32_t)((uint32_t)fl_bits_of(big) - root);
    float e = (float)((bits >> 23) - (small ? 23 : 0));
    float f = fl_float_of((bits & 0x007fffff) + (int32_t)root) - 1.0f;
    float y = fl_log_tail_f32(f) - e * 2.12194440e-4f + f;
    y += e * 0.693359375f;
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x < INFINITY ? y : x; /* infinity and NaN stay */
}

FL_VECMATH float fl_sigmoid_f32(float x)
{
    return 1.0f / (1.0f + fl_exp_f32(-x));
}

FL_VECMATH float fl_tanh_f32(float x)
{
    float a = fabsf(x), z = a * a;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = p * z * a + a;
    float far = 1.0f - 2.0f / (fl_exp_f32(a + a) + 1.0f);
    return copysignf(a < 0.625f ? near : far, x);
}

FL_VECMATH double fl_exp_f64(double x)
{
    return exp(x);
}

FL_VECMATH double fl_log_f64(double x)
{
    return log(x);
}

FL_VECMATH double fl_sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

FL_VECMATH double fl_tanh_f64(double x)
{
    return tanh(x);
}

#endif
