/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - one kernel text for f32, f64, i64 and i32.
 *
 * As real.h, for a file whose kernels also take whole numbers. It is read four
 * times with NUM, and of these twice with REAL (and RM) too:
 *
 *     #define FL_SELF "ops/scale.c"
 *     #include "op/number.h"
 *     #ifdef NUM                    // four times: float, double, int64, int32
 *     static fl_err FN(scale)(fl_call *c) { const NUM *x = ...; }
 *     #ifdef REAL                   // of these, float and double
 *     #endif
 *     #else                         // once: the rest
 *     FL_NUMBER_KERNEL(scale)       // scale() picks by dtype
 *     #endif
 *
 * Sums and products of elements are formed in WRAP, which is NUM for real
 * numbers and an unsigned type for whole ones: those wrap around, where C would
 * leave the result undefined. NUM_OF(x) is a real number x as NUM. */
#ifndef NUM

#include "op/kernel.h"

#define NUM       float
#define WRAP      float
#define REAL      float
#define NUM_OF(x) ((NUM)(x))
#define FN(name)  name##_f32
#define RM(name)  name##f
#include FL_SELF
#undef NUM
#undef WRAP
#undef REAL
#undef FN
#undef RM

#define NUM      double
#define WRAP     double
#define REAL     double
#define FN(name) name##_f64
#define RM(name) name
#include FL_SELF
#undef NUM
#undef WRAP
#undef REAL
#undef FN
#undef RM

#undef NUM_OF

#define NUM       int64_t
#define WRAP      uint64_t
#define NUM_OF(x) ((NUM)fl_whole((double)(x)))
#define FN(name)  name##_i64
#include FL_SELF
#undef NUM
#undef WRAP
#undef FN

#define NUM      int32_t
#define WRAP     uint32_t
#define FN(name) name##_i32
#include FL_SELF
#undef NUM
#undef WRAP
#undef FN
#undef NUM_OF

#endif
