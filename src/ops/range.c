/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of numbers, whose length depends on elements of the inputs.
 *
 *   range     Start, Start + Step and so on, without End
 *   linspace  Num numbers from Start to Stop, in equal steps */
#define FL_SELF "ops/range.c"
#include "op/number.h"

#ifndef FL_OPS_RANGE_C
#define FL_OPS_RANGE_C

#include <limits.h>

/* Resize Out to n numbers. */
static fl_err size_out(fl_call *c, int64_t n, void **data)
{
    fl_value *out = fl_out_value(c, "Out", 0);
    const fl_shape s = {1, {n}};
    out->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&out->tensor, fl_call_dtype(c), &s));
    *data = out->tensor.data;
    return FL_OK;
}

#endif
#ifdef NUM

static fl_err FN(range)(fl_call *c)
{
    const NUM start = *(NUM *)fl_in(c, "Start")->data;
    const NUM end = *(NUM *)fl_in(c, "End")->data;
    const NUM step = *(NUM *)fl_in(c, "Step")->data;
    const double count = ceil(((double)end - (double)start) / (double)step);
    void *out;
    if (!(step > 0 ? start <= end : step < 0 && start >= end) ||
        !(count < (double)INT_MAX))
        return fl_fail(FL_EINVAL,
                       "range: Start is %g, End is %g, Step is %g, expected "
                       "steps that lead from Start to End, fewer than 2^31 - 1",
                       (double)start, (double)end, (double)step);
    FL_TRY(size_out(c, (int64_t)count, &out));
    for (int64_t i = 0; i < (int64_t)count; i++)
        ((NUM *)out)[i] = (NUM)((WRAP)start + (WRAP)i * (WRAP)step);
    return FL_OK;
}

#ifdef REAL

static fl_err FN(linspace)(fl_call *c)
{
    const REAL start = *(REAL *)fl_in(c, "Start")->data;
    const REAL stop = *(REAL *)fl_in(c, "Stop")->data;
    const int32_t n = *(int32_t *)fl_in(c, "Num")->data;
    void *out;
    if (n < 1)
        return fl_fail(FL_EINVAL, "linspace: Num is %d, expected 1 or more",
                       (int)n);
    FL_TRY(size_out(c, n, &out));
    const REAL step = n > 1 ? (stop - start) / (REAL)(n - 1) : 0;
    for (int32_t i = 0; i < n; i++)
        ((REAL *)out)[i] = start + step * (REAL)i;
    return FL_OK;
}

#endif

#else

FL_NUMBER_KERNEL(range)
FL_REAL_KERNEL(linspace)

static fl_err infer_row(fl_infer *x, const char *second, const char *third,
                        fl_dtype type_of_third)
{
    const fl_dtype dtype = fl_meta_in(x, "Start", 0)->dtype;
    const fl_shape one = {1, {1}}, any = {1, {-1}};
    FL_TRY(fl_meta_expect(x, "Start", dtype, &one));
    FL_TRY(fl_meta_expect(x, second, dtype, &one));
    FL_TRY(fl_meta_expect(x, third, type_of_third, &one));
    if (!fl_meta_running(x)) /* otherwise the kernel resizes it */
        fl_meta_set(x, "Out", 0, dtype, &any);
    return FL_OK;
}

static fl_err infer_range(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "Start", FL_NUMBERS));
    return infer_row(x, "End", "Step", fl_meta_in(x, "Start", 0)->dtype);
}

static fl_err infer_linspace(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "Start", FL_REALS));
    return infer_row(x, "Stop", "Num", FL_I32);
}

const fl_op_def fl_op_range = {
    .type = "range",
    .in = {{"Start", FL_NOGRAD}, {"End", FL_NOGRAD}, {"Step", FL_NOGRAD}},
    .out = {{"Out"}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_range,
    .run = range,
};

const fl_op_def fl_op_linspace = {
    .type = "linspace",
    .in = {{"Start", FL_NOGRAD}, {"Stop", FL_NOGRAD}, {"Num", FL_NOGRAD}},
    .out = {{"Out"}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_linspace,
    .run = linspace,
};

#endif
