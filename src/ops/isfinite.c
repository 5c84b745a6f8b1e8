/* SPDX-License-Identifier: Apache-2.0 */
/* Of all elements of X, one bool:
 *
 *     isfinite  none is infinite or NaN
 *     isinf     one is infinite
 *     isnan     one is NaN */
#define FL_SELF "ops/isfinite.c"
#include "op/real.h"

#ifndef FL_OPS_ISFINITE_C
#define FL_OPS_ISFINITE_C

typedef struct found {
    bool infinite, nan;
} found;

#endif
#ifdef REAL

/* x - x is 0 for every finite x, and NaN for all others. */
FL_CLONES static found FN(find_odd)(int64_t n, const REAL *x)
{
    int infinite = 0, nan = 0;
    for (int64_t i = 0; i < n; i++) {
        nan |= x[i] != x[i];
        infinite |= x[i] == x[i] && x[i] - x[i] != 0;
    }
    return (found){infinite, nan};
}

#else

static found find_odd(const fl_call *c)
{
    const fl_value *v = fl_in_value(c, "X", 0);
    const fl_tensor *x =
        v->kind == FL_SELECTED_ROWS ? &v->rows.value : &v->tensor;
    if (x->dtype == FL_F32)
        return find_odd_f32(fl_tensor_numel(x), x->data);
    if (x->dtype == FL_F64)
        return find_odd_f64(fl_tensor_numel(x), x->data);
    return (found){false, false}; /* integers are always finite */
}

static fl_err isfinite_run(fl_call *c)
{
    const found f = find_odd(c);
    *(bool *)fl_out(c, "Out")->data = !f.infinite && !f.nan;
    return FL_OK;
}

static fl_err isinf_run(fl_call *c)
{
    *(bool *)fl_out(c, "Out")->data = find_odd(c).infinite;
    return FL_OK;
}

static fl_err isnan_run(fl_call *c)
{
    *(bool *)fl_out(c, "Out")->data = find_odd(c).nan;
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    fl_shape one = {1, {1}};
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS));
    fl_meta_set(x, "Out", 0, FL_BOOL, &one);
    return FL_OK;
}

#define LOOK(name)                                                             \
    const fl_op_def fl_op_##name = {                                           \
        .type = #name,                                                         \
        .in = {{"X", FL_NOGRAD}},                                              \
        .out = {{"Out"}},                                                      \
        .infer = infer,                                                        \
        .run = name##_run,                                                     \
    };

LOOK(isfinite)
LOOK(isinf)
LOOK(isnan)

#endif
