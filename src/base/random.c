/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - minstd_rand and libstdc++'s distributions over it.
 *
 * The file reads itself twice, for float and double: the original computes
 * each in its own type, and rounding is part of the numbers. */
#ifndef REAL

#include "base/random.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

enum {
    MULTIPLIER = 48271,
    MODULUS = 2147483647, /* 2^31 - 1 */
    VALUES = MODULUS - 1, /* different numbers a draw can give */
};

fl_rng fl_rng_of(uint64_t seed)
{
    uint32_t x = (uint32_t)(seed % MODULUS);
    return (fl_rng){x ? x : 1};
}

uint32_t fl_rng_next(fl_rng *r)
{
    r->x = (uint32_t)((uint64_t)r->x * MULTIPLIER % MODULUS);
    return r->x;
}

void fl_rng_skip(fl_rng *r, uint64_t n)
{
    for (uint64_t power = MULTIPLIER; n; n >>= 1) { /* multiplier^n */
        if (n & 1)
            r->x = (uint32_t)(r->x * power % MODULUS);
        power = power * power % MODULUS;
    }
}

float fl_rng_f32(fl_rng *r)
{
    float u = (float)(fl_rng_next(r) - 1) / (float)VALUES;
    return u < 1 ? u : 1 - FLT_EPSILON / 2; /* rounding may reach 1 */
}

double fl_rng_f64(fl_rng *r)
{
    double low = fl_rng_next(r) - 1, high = fl_rng_next(r) - 1;
    double u = (low + high * VALUES) / ((double)VALUES * VALUES);
    return u < 1 ? u : 1 - DBL_EPSILON / 2;
}

/* a[0] + a[1] x + ... + a[7] x^7 */
static double polynomial(const double a[8], double x)
{
    double y = a[7];
    for (int i = 6; i >= 0; i--)
        y = y * x + a[i];
    return y;
}

/* Wichura's AS 241 (1988), without its third part for the far tails. */
double fl_normal_quantile(double p)
{
    static const double a[] = {
        3.3871328727963666080e0, 1.3314166789178437745e2,
        1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3,
    };
    static const double b[] = {
        1,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    };
    static const double c[] = {
        1.42343711074968357734e0,  4.63033784615654529590e0,
        5.76949722146069140550e0,  3.64784832476320460504e0,
        1.27045825245236838258e0,  2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4,
    };
    static const double d[] = {
        1,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    };
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, r) / polynomial(b, r);
    }
    double r = sqrt(-log(q < 0 ? p : 1 - p)) - 1.6;
    return copysign(polynomial(c, r) / polynomial(d, r), q);
}

static uint64_t draw_real(fl_entropy *e)
{
    uint64_t x = 0;
    while (getrandom(&x, sizeof x, 0) != sizeof x)
        ; /* a signal interrupted the call */
    return x;
}

fl_entropy fl_entropy_real(void)
{
    return (fl_entropy){.draw = draw_real};
}

static uint64_t draw_fake(fl_entropy *e)
{
    uint64_t x = e->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

fl_entropy fl_entropy_fake(uint64_t seed)
{
    return (fl_entropy){.draw = draw_fake, .state = seed};
}

#define REAL     float
#define FN(name) name##_f32
#define RM(name) name##f
#include "base/random.c"
#undef REAL
#undef FN
#undef RM

#define REAL     double
#define FN(name) name##_f64
#define RM(name) name
#include "base/random.c"

#else

void FN(fl_rng_uniform)(fl_rng *r, REAL low, REAL high, int64_t n, REAL *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = FN(fl_rng)(r) * (high - low) + low;
}

/* Draw a point in the unit circle. Returns its squared distance from the
 * centre. */
static REAL FN(draw_point)(fl_rng *r, REAL *x, REAL *y)
{
    REAL square;
    do {
        *x = 2 * FN(fl_rng)(r) - 1;
        *y = 2 * FN(fl_rng)(r) - 1;
        square = *x * *x + *y * *y;
    } while (square > 1 || square == 0);
    return square;
}

void FN(fl_rng_skip_normal)(fl_rng *r, int64_t n)
{
    REAL x, y;
    for (int64_t i = 0; i < n; i++)
        FN(draw_point)(r, &x, &y);
}

/* A point gives two numbers; that of y is used first. */
void FN(fl_rng_normal)(fl_rng *r, REAL mean, REAL std, int64_t n, REAL *out)
{
    for (int64_t i = 0; i < n; i += 2) {
        REAL x, y, square = FN(draw_point)(r, &x, &y);
        REAL m = RM(sqrt)(-2 * RM(log)(square) / square);
        out[i] = y * m * std + mean;
        if (i + 1 < n)
            out[i + 1] = x * m * std + mean;
    }
}

/* The inverse of the distribution function, applied to a uniform number between
 * its values at -2 and 2. */
void FN(fl_rng_truncated)(fl_rng *r, REAL mean, REAL std, int64_t n, REAL *out)
{
    const double low = 0.5 * erfc(M_SQRT2), range = erf(M_SQRT2);
    FN(fl_rng_uniform)(r, FLT_MIN, 1, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] =
            (REAL)fl_normal_quantile(low + range * (double)out[i]) * std + mean;
}

#endif
