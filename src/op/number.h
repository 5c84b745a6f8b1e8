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
 */
#ifndef NUM

#include "op/kernel.h"

#define NUM      float
#define REAL     float
#define FN(name) name##_f32
#define RM(name) name##f
#include FL_SELF
#undef NUM
#undef REAL
#undef FN
#undef RM

#define NUM      double
#define REAL     double
#define FN(name) name##_f64
#define RM(name) name
#include FL_SELF
#undef NUM
#undef REAL
#undef FN
#undef RM

#define NUM      int64_t
#define FN(name) name##_i64
#include FL_SELF
#undef NUM
#undef FN

#define NUM      int32_t
#define FN(name) name##_i32
#include FL_SELF
#undef NUM
#undef FN

#endif
