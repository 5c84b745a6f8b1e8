/* SPDX-License-Identifier: Apache-2.0 */
/* softmax   Out    = exp(X - max) / sum of exp(X - max) along `axis`
 * gradient  X@GRAD = (Out@GRAD - sum of Out@GRAD * Out) * Out */
#define FL_SELF "ops/softmax.c"
#include "op/real.h"

#ifndef FL_OPS_SOFTMAX_C
#define FL_OPS_SOFTMAX_C

#include "kernel/softmax.h"
#include "op/vecmath.h"

enum {
    LANES = 16
};

#endif
#ifdef REAL

FL_CLONES static REAL FN(max_of)(int64_t n, const REAL *x)
{
    REAL lane[LANES], max = x[0];
    int64_t i = 0;
    for (int l = 0; l < LANES; l++)
        lane[l] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int l = 0; l < LANES; l++)
        max = lane[l] > max ? lane[l] : max;
    return max;
}

FL_CLONES static void FN(exp_from)(int64_t n, REAL max, const REAL *x, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL d = x[i] - max;
        y[i] = FN(fl_exp)(d < -64 ? -64 : d);
    }
}

FL_CLONES static void FN(divide)(int64_t n, REAL by, REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] /= by;
}

/* A line whose elements are contiguous. */
static void FN(dense_line)(int64_t n, const REAL *x, REAL *y)
{
    FN(exp_from)(n, FN(max_of)(n, x), x, y);
    FN(divide)(n, FN(fl_sum)(n, y), y);
}

static void FN(spread_line)(int64_t n, int64_t step, const REAL *x, REAL *y)
{
    REAL max = x[0], sum = 0;
    for (int64_t j = 1; j < n; j++)
        max = x[j * step] > max ? x[j * step] : max;
    for (int64_t j = 0; j < n; j++) {
        REAL d = x[j * step] - max;
        y[j * step] = FN(fl_exp)(d < -64 ? -64 : d);
        sum += y[j * step];
    }
    for (int64_t j = 0; j < n; j++)
        y[j * step] /= sum;
}

/* Short lines, such as two classes, are computed without vectors. */
void FN(fl_softmax)(fl_axis at, const REAL *x, REAL *y)
{
    bool dense = at.inner == 1 && at.size >= LANES;
    for (int64_t o = 0; o < at.outer && at.size; o++)
        for (int64_t i = 0; i < at.inner; i++) {
            int64_t first = o * at.size * at.inner + i;
            if (dense)
                FN(dense_line)(at.size, x + first, y + first);
            else
                FN(spread_line)(at.size, at.inner, x + first, y + first);
        }
}

static fl_err FN(softmax)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_axis at = fl_axis_of(&x->shape, fl_attr_i64(c, "axis"));
    FN(fl_softmax)(at, x->data, fl_out(c, "Out")->data);
    return FL_OK;
}

FL_CLONES static void FN(slopes)(int64_t n, REAL dot, const REAL *y,
                                 const REAL *dy, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dx[i] = (dy[i] - dot) * y[i];
}

static void FN(grad_dense)(int64_t n, const REAL *y, const REAL *dy, REAL *dx)
{
    FN(slopes)(n, FN(fl_dot)(n, y, dy), y, dy, dx);
}

static void FN(grad_spread)(int64_t n, int64_t step, const REAL *y,
                            const REAL *dy, REAL *dx)
{
    REAL dot = 0;
    for (int64_t j = 0; j < n; j++)
        dot += y[j * step] * dy[j * step];
    for (int64_t j = 0; j < n; j++)
        dx[j * step] = (dy[j * step] - dot) * y[j * step];
}

static fl_err FN(softmax_grad)(fl_call *c)
{
    const fl_tensor *out = fl_in(c, "Out");
    const REAL *y = out->data, *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    fl_axis at = fl_axis_of(&out->shape, fl_attr_i64(c, "axis"));
    bool dense = at.inner == 1 && at.size >= LANES;
    for (int64_t o = 0; o < at.outer; o++)
        for (int64_t i = 0; i < at.inner; i++) {
            int64_t k = o * at.size * at.inner + i;
            if (dense)
                FN(grad_dense)(at.size, y + k, dy + k, dx + k);
            else
                FN(grad_spread)(at.size, at.inner, y + k, dy + k, dx + k);
        }
    return FL_OK;
}

#else

FL_REAL_KERNEL(softmax)
FL_REAL_KERNEL(softmax_grad)

fl_axis fl_axis_of(const fl_shape *s, int64_t axis)
{
    int dim = (int)(axis < 0 ? axis + s->rank : axis);
    return (fl_axis){
        .outer = fl_shape_span(s, 0, dim),
        .size = s->dim[dim],
        .inner = fl_shape_span(s, dim + 1, s->rank),
    };
}

fl_err fl_meta_axis(const fl_infer *x, const char *slot, int *dim)
{
    int64_t axis = fl_meta_attr(x, "axis")->i;
    int rank = fl_meta_in(x, slot, 0)->shape.rank;
    if (axis < -rank || axis >= rank)
        return fl_fail(FL_ESHAPE, "%s: axis is %lld, %s has %d dims",
                       fl_meta_type(x), (long long)axis, slot, rank);
    *dim = (int)(axis < 0 ? axis + rank : axis);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    int dim;
    FL_TRY(fl_meta_axis(x, "X", &dim));
    return fl_infer_real(x);
}

static fl_err infer_grad(fl_infer *x)
{
    int dim;
    FL_TRY(fl_meta_axis(x, "Out", &dim));
    return fl_infer_grad_alike(x);
}

const fl_op_def fl_op_softmax = {
    .type = "softmax",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .i = -1}},
    .infer = infer,
    .run = softmax,
    .grad_in = {"Out", "Out@GRAD"},
    .grad_run = softmax_grad,
    .grad_infer = infer_grad,
};

#endif
