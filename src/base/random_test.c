/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include "base/test.h"

#include <math.h>

/* The expected numbers are what the original draws for these seeds. */

static void uniform_f32_is_that_of_fluid(void)
{
    const struct {
        uint64_t seed;
        float want[6];
    } row[] = {
        {1,
         {-0.999955058f, -0.829935074f, 0.202705264f, 0.783222556f,
          0.935911417f, -0.620620489f}},
        {10,
         {-0.999550462f, 0.700649023f, -0.972947896f, 0.832225561f,
          0.359114051f, 0.793795466f}},
        {90,
         {-0.995953977f, 0.30584085f, -0.75653106f, -0.509970129f,
          -0.767973661f, -0.855841041f}},
    };
    for (int k = 0; k < 3; k++) {
        float got[6];
        fl_rng r = fl_rng_of(row[k].seed);
        fl_rng_uniform_f32(&r, -1, 1, 6, got);
        for (int i = 0; i < 6; i++)
            CHECK_NEAR(got[i], row[k].want[i], 0);
    }
}

static void uniform_f64_takes_two_draws(void)
{
    const double want[] = {-0.8299351025651327, 0.78322255460971535,
                           -0.62062045620071216, -0.20398322370742217};
    double got[4];
    fl_rng r = fl_rng_of(1);
    fl_rng_uniform_f64(&r, -1, 1, 4, got);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(got[i], want[i], 0);
}

static void bare_draws_are_those_of_dropout(void)
{
    const float want[] = {2.24774703e-05f, 0.0850324482f, 0.601352632f,
                          0.891611278f,    0.967955709f,  0.18968977f};
    fl_rng r = fl_rng_of(1);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(fl_rng_f32(&r), want[i], 0);
}

static void normal_f32_is_that_of_fluid(void)
{
    const float one[] = {0.891330183f, 0.230684519f, -2.48654437f,
                         0.365109444f, 0.890341103f, -0.866873085f};
    const float ten[] = {0.67649591f, 0.306047589f, -1.00091672f,
                         1.9911983f,  0.227918178f, 0.867537677f};
    float got[6];
    fl_rng r = fl_rng_of(1);
    fl_rng_normal_f32(&r, 0, 1, 6, got);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(got[i], one[i], 0);
    r = fl_rng_of(10);
    fl_rng_normal_f32(&r, 0, 1, 5, got);
    for (int i = 0; i < 5; i++)
        CHECK_NEAR(got[i], ten[i], 0);
}

static void normal_f64_is_that_of_libstdcxx(void)
{
    const double want[] = {0.18505642652424659, -1.4794718073178368,
                           1.7995413234176787};
    double got[3];
    fl_rng r = fl_rng_of(1);
    fl_rng_normal_f64(&r, 1, 2, 3, got);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(got[i], want[i], 1e-15);
}

static void draws_never_reach_one(void)
{
    fl_rng r = fl_rng_of(247665088); /* the next is the largest, 2^31 - 2 */
    CHECK_NEAR(fl_rng_f32(&r), 0.99999994f, 0);
    CHECK_INT(r.x, 2147483646);
}

static void seeds_are_never_stuck(void)
{
    fl_rng zero = fl_rng_of(0), wrapped = fl_rng_of(2147483647u),
           high = fl_rng_of(2147483648u);
    CHECK_INT(fl_rng_next(&zero), 48271);
    CHECK_INT(fl_rng_next(&wrapped), 48271);
    CHECK_INT(fl_rng_next(&high), 48271);
}

static void quantile_inverts_the_distribution(void)
{
    for (double p = 0.001; p < 0.9995; p += 0.001)
        CHECK_NEAR(0.5 * erfc(-fl_normal_quantile(p) / M_SQRT2), p, 1e-15);
}

static void truncated_stays_within_two_std(void)
{
    enum {
        N = 20000
    };
    static float x[N];
    fl_rng r = fl_rng_of(7);
    double sum = 0, square = 0;
    fl_rng_truncated_f32(&r, 1, 0.5f, N, x);
    for (int i = 0; i < N; i++) {
        CHECK(x[i] >= 0 && x[i] <= 2);
        sum += x[i] - 1;
        square += (x[i] - 1) * (x[i] - 1);
    }
    CHECK_NEAR(sum / N, 0, 0.01);
    CHECK_NEAR(sqrt(square / N), 0.5 * 0.8796, 0.01);
}

static void entropy_can_be_replaced(void)
{
    fl_entropy a = fl_entropy_fake(3), b = fl_entropy_fake(3),
               real = fl_entropy_real();
    uint64_t first = a.draw(&a);
    CHECK(first == b.draw(&b));
    CHECK(first != a.draw(&a));
    CHECK(real.draw(&real) != real.draw(&real));
}

static void skips_pairs_of_normal_numbers(void)
{
    float numbers[2001], next;
    double wide[201], next_wide;
    fl_rng all = fl_rng_of(7), later = all;
    fl_rng_normal_f32(&all, 0, 1, 2001, numbers);
    fl_rng_skip_normal_f32(&later, 1000);
    fl_rng_normal_f32(&later, 0, 1, 1, &next);
    CHECK(next == numbers[2000]);
    all = later = fl_rng_of(8);
    fl_rng_normal_f64(&all, 0, 1, 201, wide);
    fl_rng_skip_normal_f64(&later, 100);
    fl_rng_normal_f64(&later, 0, 1, 1, &next_wide);
    CHECK(next_wide == wide[200]);
}

const fl_test fl_tests[] = {
    {"uniform f32 is that of Fluid", uniform_f32_is_that_of_fluid},
    {"uniform f64 takes two draws", uniform_f64_takes_two_draws},
    {"bare draws are those of dropout", bare_draws_are_those_of_dropout},
    {"normal f32 is that of Fluid", normal_f32_is_that_of_fluid},
    {"normal f64 is that of libstdc++", normal_f64_is_that_of_libstdcxx},
    {"draws never reach one", draws_never_reach_one},
    {"seeds are never stuck", seeds_are_never_stuck},
    {"quantile inverts the distribution", quantile_inverts_the_distribution},
    {"truncated normal stays within two std", truncated_stays_within_two_std},
    {"entropy can be replaced", entropy_can_be_replaced},
    {"pairs of normal numbers are skipped", skips_pairs_of_normal_numbers},
    {0},
};
