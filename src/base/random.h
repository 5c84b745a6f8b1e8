/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - the numbers that Fluid draws, and where seeds come from.
 *
 * The generator is C++'s minstd_rand and the distributions are libstdc++'s, so
 * that a seed gives the numbers that it gave in the original. */
#ifndef FL_BASE_RANDOM_H
#define FL_BASE_RANDOM_H

#include <stdint.h>

/* Thread: one at a time. */
typedef struct fl_rng {
    uint32_t x; /* 1 .. 2^31 - 2 */
} fl_rng;

fl_rng fl_rng_of(uint64_t seed);
uint32_t fl_rng_next(fl_rng *r);
void fl_rng_skip(fl_rng *r, uint64_t n); /* skip n draws; fast for any n */

float fl_rng_f32(fl_rng *r);  /* [0, 1), one draw */
double fl_rng_f64(fl_rng *r); /* [0, 1), two draws */

/* n numbers each, as from a C++ distribution object that is made for this call.
 */
void fl_rng_uniform_f32(fl_rng *r, float low, float high, int64_t n,
                        float *out);
void fl_rng_uniform_f64(fl_rng *r, double low, double high, int64_t n,
                        double *out);
void fl_rng_normal_f32(fl_rng *r, float mean, float std, int64_t n, float *out);
void fl_rng_normal_f64(fl_rng *r, double mean, double std, int64_t n,
                       double *out);

/* Skip n pairs of normal numbers. Every pair is drawn, so this takes time. */
void fl_rng_skip_normal_f32(fl_rng *r, int64_t n);
void fl_rng_skip_normal_f64(fl_rng *r, int64_t n);

/* Normal, but never farther than 2 std from the mean. */
void fl_rng_truncated_f32(fl_rng *r, float mean, float std, int64_t n,
                          float *out);
void fl_rng_truncated_f64(fl_rng *r, double mean, double std, int64_t n,
                          double *out);

/* The value that a standard normal number is below with probability p, for p
 * between 0.0001 and 0.9999. */
double fl_normal_quantile(double p);

/* --- where seeds come from --- */

typedef struct fl_entropy fl_entropy;

struct fl_entropy {
    uint64_t (*draw)(fl_entropy *e);
    uint64_t state; /* state of a fake generator */
};

fl_entropy fl_entropy_real(void);          /* from the system; Thread: any */
fl_entropy fl_entropy_fake(uint64_t seed); /* the same numbers every time */

#endif
