/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - what all kernels include. */
#ifndef FL_OP_KERNEL_H
#define FL_OP_KERNEL_H

#include "base/clones.h"
#include "op/lanes.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

/* Put it before a loop over elements. It tells the compiler that no element
 * depends on another, even if an output is an input; otherwise such loops are
 * not vectorised. */
#ifdef __clang__
#define FL_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define FL_APART _Pragma("GCC ivdep")
#endif

/* a to the power of b, which is 0 or more; wraps around. */
static inline int64_t fl_whole_pow(int64_t a, int64_t b)
{
    uint64_t y = 1, power = (uint64_t)a;
    for (; b > 0; b >>= 1, power *= power)
        if (b & 1)
            y *= power;
    return (int64_t)y;
}

/* Clear an output to which sums are added, and return its elements; NULL: the
 * output is absent. */
static inline void *fl_cleared(fl_tensor *t)
{
    if (!t)
        return NULL;
    memset(t->data, 0, fl_tensor_bytes(t));
    return t->data;
}

/* name() picks name_f32() or name_f64(); see real.h. */
#define FL_REAL_KERNEL(name)                                                   \
    static fl_err name(fl_call *c)                                             \
    {                                                                          \
        return fl_call_dtype(c) == FL_F64 ? name##_f64(c) : name##_f32(c);     \
    }

/* The same with name_i64() and name_i32(); see number.h. */
#define FL_NUMBER_KERNEL(name)                                                 \
    static fl_err name(fl_call *c)                                             \
    {                                                                          \
        switch (fl_call_dtype(c)) {                                            \
        case FL_F64:                                                           \
            return name##_f64(c);                                              \
        case FL_I64:                                                           \
            return name##_i64(c);                                              \
        case FL_I32:                                                           \
            return name##_i32(c);                                              \
        default:                                                               \
            return name##_f32(c);                                              \
        }                                                                      \
    }

#endif
