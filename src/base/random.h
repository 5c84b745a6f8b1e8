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
void fl_rng_skip(fl_rng *r, uint64_t n); /* as after n draws; takes no time */

float fl_rng_f32(fl_rng *r);  /* [0, 1), one draw */
double fl_rng_f64(fl_rng *r); /* [0, 1), two draws */

/* n numbers each, as from a distribution object made for this call. */
void fl_rng_uniform_f32(fl_rng *r, float low, float high, int64_t n,
                        float *out);
void fl_rng_uniform_f64(fl_rng *r, double low, double high, int64_t n,
                        double *out);
void fl_rng_normal_f32(fl_rng *r, float mean, float std, int64_t n, float *out);
void fl_rng_normal_f64(fl_rng *r, double mean, double std, int64_t n,
                       double *out);

/* As after n pairs of normal numbers; every pair is drawn. */
void fl_rng_skip_normal_f32(fl_rng *r, int64_t n);
void fl_rng_skip_normal_f64(fl_rng *r, int64_t n);

/* Normal, but never farther than 2 std from the mean. */
void fl_rng_truncated_f32(fl_rng *r, float mean, float std, int64_t n,
                          float *out);
void fl_rng_truncated_f64(fl_rng *r, double mean, double std, int64_t n,
                          double *out);

/* Below this value a standard normal number stays with probability p, which
 * is between 0.0001 and 0.9999. */
double fl_normal_quantile(double p);

/* --- where seeds come from --- */

typedef struct fl_entropy fl_entropy;

struct fl_entropy {
    uint64_t (*draw)(fl_entropy *e);
    uint64_t state; /* of one that is not real */
};

fl_entropy fl_entropy_real(void);          /* the system's; Thread: any */
fl_entropy fl_entropy_fake(uint64_t seed); /* the same every time */

#endif
