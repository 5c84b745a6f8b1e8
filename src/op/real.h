/* SPDX-License-Identifier: Apache-2.0 */
/* real.h - one kernel text for f32 and f64.
 *
 * A file whose kernels compute in real numbers is read three times:
 *
 *     #define FL_SELF "ops/mean.c"
 *     #include "op/real.h"
 *     #ifdef REAL                   // twice: REAL is float, then double
 *     static fl_err FN(mean)(fl_call *c) { const REAL *x = ...; }
 *     #else                         // once: the rest
 *     FL_REAL_KERNEL(mean)          // mean() picks mean_f32 or mean_f64
 *     const fl_op_def fl_op_mean = {..., .run = mean};
 *     #endif
 */
#ifndef REAL

#include "op/kernel.h"

#define REAL     float
#define FN(name) name##_f32
#define RM(name) name##f /* RM(exp) is expf or exp */
#include FL_SELF
#undef REAL
#undef FN
#undef RM

#define REAL     double
#define FN(name) name##_f64
#define RM(name) name
#include FL_SELF
#undef REAL
#undef FN
#undef RM

#endif
