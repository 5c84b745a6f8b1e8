/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - Out = X op Y as bool, Y broadcast into X.
 *
 * As elementwise.c: X is [pre, n, post], Y has the n elements. */
#define FL_SELF "ops/compare.c"
#include "op/number.h"
#ifdef NUM

typedef void FN(loop)(int64_t n, const NUM *x, const NUM *y, int64_t step,
                      uint8_t *z);

/* y moves by `step`: 1, or 0 if it is the same for all x. */
#define COMPARE(name, op)                                                      \
    static void FN(name##_loop)(int64_t n, const NUM *x, const NUM *y,         \
                                int64_t step, uint8_t *z)                      \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            z[i] = x[i] op y[i * step];                                        \
    }                                                                          \
    static fl_err FN(name)(fl_call * c)                                        \
    {                                                                          \
        return FN(spread)(c, FN(name##_loop));                                 \
    }

static fl_err FN(spread)(fl_call *c, FN(loop) * loop)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    fl_fit f = fl_fit_of(&x->shape, &y->shape, fl_attr_i64(c, "axis"));
    const NUM *px = x->data, *py = y->data;
    uint8_t *z = fl_out(c, "Out")->data;
    if (f.post == 1)
        for (int64_t at = 0; at < f.pre * f.n; at += f.n)
            loop(f.n, px + at, py, 1, z + at);
    else
        for (int64_t i = 0, at = 0; i < f.pre * f.n; i++, at += f.post)
            loop(f.post, px + at, py + i % f.n, 0, z + at);
    return FL_OK;
}

COMPARE(less_than, <)
COMPARE(less_equal, <=)
COMPARE(greater_than, >)
COMPARE(greater_equal, >=)
COMPARE(equal, ==)
COMPARE(not_equal, !=)

#undef COMPARE

#else

#define NUM      uint8_t
#define FN(name) name##_bool
#include FL_SELF
#undef NUM
#undef FN

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_SET(FL_BOOL)));
    FL_TRY(fl_infer_broadcast(x));
    fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out)
        out->dtype = FL_BOOL;
    return FL_OK;
}

/* force_cpu has no effect: there is only the CPU. */
#define COMPARE(name)                                                          \
    FL_NUMBER_KERNEL(name)                                                     \
    static fl_err name##_run(fl_call *c)                                       \
    {                                                                          \
        return fl_call_dtype(c) == FL_BOOL ? name##_bool(c) : name(c);         \
    }                                                                          \
    const fl_op_def fl_op_##name = {                                           \
        .type = #name,                                                         \
        .in = {{"X", FL_NOGRAD}, {"Y", FL_NOGRAD}},                            \
        .out = {{"Out"}},                                                      \
        .attr = {{"axis", FL_ATTR_INT, .i = -1},                               \
                 {"force_cpu", FL_ATTR_BOOL, .b = true}},                      \
        .infer = infer,                                                        \
        .run = name##_run,                                                     \
    };

COMPARE(less_than)
COMPARE(less_equal)
COMPARE(greater_than)
COMPARE(greater_equal)
COMPARE(equal)
COMPARE(not_equal)

#endif
