/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_pool  one row of Out for each sequence of X (the last level of its
 *                LoD; Out keeps the levels above)
 *
 *     pooltype   Out[s]                            X@GRAD[i], i in s
 *     SUM        sum of the rows                   Out@GRAD[s]
 *     AVERAGE    sum / length                      Out@GRAD[s] / length
 *     SQRT       sum / sqrt(length)                Out@GRAD[s] / sqrt(length)
 *     MAX        largest, column by column         Out@GRAD[s] where it was
 *     LAST       last row                          Out@GRAD[s] for the last
 *     FIRST      first row                         Out@GRAD[s] for the first
 *
 * MaxIndex has the row that each MAX came from. An empty sequence gives
 * pad_value everywhere. */
#define FL_SELF "ops/sequence_pool.c"
#include "op/real.h"

#include <string.h>

#ifndef POOLS
#define POOLS
#include "kernel/sequence.h"

typedef enum pool {
    AVERAGE,
    SUM,
    SQRT,
    MAX,
    LAST,
    FIRST,
    POOL_KINDS,
} pool;

static pool pool_of(const char *name)
{
    static const char *const names[] = {"AVERAGE", "SUM",  "SQRT",
                                        "MAX",     "LAST", "FIRST"};
    int k = 0;
    while (k < POOL_KINDS && strcmp(names[k], name))
        k++;
    return (pool)k;
}
#endif
#ifdef REAL

enum {
    FN(CHUNK) = 256 /* columns */
};

/* Reduce the rows [at, end) to one; there is at least one. */
static void FN(add_up)(int64_t width, const REAL *x, int64_t at, int64_t end,
                       REAL scale, REAL *y)
{
    double total[FN(CHUNK)];
    for (int64_t j = 0, k; j < width; j += k) {
        k = width - j < FN(CHUNK) ? width - j : FN(CHUNK);
        FN(fl_rows_clear)(k, y + j, total);
        for (int64_t i = at; i < end; i++) {
            FN(fl_add)(k, x + i * width + j, y + j);
            FN(fl_rows_added)(k, i - at, end - at, y + j, total);
        }
    }
    if (scale != 1)
        for (int64_t j = 0; j < width; j++)
            y[j] *= scale;
}

static void FN(largest)(int64_t width, const REAL *x, int64_t at, int64_t end,
                        REAL *y, int32_t *index)
{
    for (int64_t j = 0; j < width; j++) {
        int64_t best = at;
        for (int64_t i = at + 1; i < end; i++)
            if (x[i * width + j] > x[best * width + j])
                best = i;
        y[j] = x[best * width + j];
        if (index)
            index[j] = (int32_t)best;
    }
}

static REAL FN(scale_of)(pool kind, int64_t length)
{
    return kind == AVERAGE ? 1 / (REAL)length
           : kind == SQRT  ? 1 / RM(sqrt)((REAL)length)
                           : 1;
}

static void FN(empty)(int64_t width, REAL pad, REAL *y, int32_t *index)
{
    for (int64_t j = 0; j < width; j++) {
        y[j] = pad;
        if (index)
            index[j] = -1;
    }
}

static void FN(pool_one)(pool kind, int64_t width, const REAL *x, int64_t at,
                         int64_t end, REAL *y, int32_t *index)
{
    if (kind == LAST || kind == FIRST)
        memcpy(y, x + (kind == LAST ? end - 1 : at) * width,
               (size_t)width * sizeof *y);
    else if (kind == MAX)
        FN(largest)(width, x, at, end, y, index);
    else
        FN(add_up)(width, x, at, end, FN(scale_of)(kind, end - at), y);
}

static fl_err FN(sequence_pool)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out"), *max = fl_out(c, "MaxIndex");
    pool kind = pool_of(fl_attr_str(c, "pooltype"));
    int64_t width = fl_shape_span(&x->shape, 1, x->shape.rank);
    int64_t n = y->shape.dim[0];
    const int64_t *off = x->lod.off[x->lod.levels - 1];
    REAL *out = y->data, pad = (REAL)fl_attr_f32(c, "pad_value");
    int32_t *index = max && kind == MAX ? max->data : NULL;
    for (int64_t s = 0; s < n; s++, out += width) {
        int32_t *at = index ? index + s * width : NULL;
        if (off[s] == off[s + 1])
            FN(empty)(width, pad, out, at);
        else
            FN(pool_one)(kind, width, x->data, off[s], off[s + 1], out, at);
    }
    fl_lod upper = x->lod;
    upper.levels--;
    return fl_lod_ref(&y->lod, &upper);
}

/* Give the rows [at, end) their part of one row of the gradient. */
static void FN(share)(pool kind, int64_t width, const REAL *dy,
                      const int32_t *index, int64_t at, int64_t end, REAL *dx)
{
    size_t bytes = (size_t)width * sizeof *dx;
    if (kind == MAX) {
        for (int64_t j = 0; j < width; j++)
            if (index[j] >= at && index[j] < end)
                dx[index[j] * width + j] = dy[j];
    } else if (kind == LAST || kind == FIRST) {
        memcpy(dx + (kind == LAST ? end - 1 : at) * width, dy, bytes);
    } else {
        REAL scale = FN(scale_of)(kind, end - at);
        for (int64_t i = at; i < end; i++)
            for (int64_t j = 0; j < width; j++)
                dx[i * width + j] = dy[j] * scale;
    }
}

static fl_err FN(sequence_pool_grad)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *dy = fl_in(c, "Out@GRAD");
    const fl_tensor *max = fl_in(c, "MaxIndex");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (!dx)
        return FL_OK;
    pool kind = pool_of(fl_attr_str(c, "pooltype"));
    int64_t width = fl_shape_span(&x->shape, 1, x->shape.rank);
    const int64_t *off = x->lod.off[x->lod.levels - 1];
    if (kind == MAX || kind == LAST || kind == FIRST)
        memset(dx->data, 0, fl_tensor_bytes(dx));
    for (int64_t s = 0, n = dy->shape.dim[0]; s < n; s++)
        if (off[s] < off[s + 1])
            FN(share)
    (kind, width, (const REAL *)dy->data + s * width,
     kind == MAX ? (int32_t *)max->data + s * width : NULL, off[s], off[s + 1],
     dx->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(sequence_pool)
FL_REAL_KERNEL(sequence_pool_grad)

static fl_err check_pool(const fl_infer *x)
{
    const char *type = fl_meta_attr(x, "pooltype")->s;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (!type || pool_of(type) == POOL_KINDS)
        return fl_fail(FL_EINVAL,
                       "sequence_pool: pooltype is \"%s\", expected AVERAGE, "
                       "SUM, SQRT, MAX, LAST or FIRST",
                       type ? type : "");
    return fl_sequence_check(x, "X", 0);
}

static fl_err infer_pool(fl_infer *x)
{
    FL_TRY(check_pool(x));
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    fl_shape s = in->shape, none = {1, {0}};
    bool max = pool_of(fl_meta_attr(x, "pooltype")->s) == MAX;
    s.dim[0] = in->lod ? in->lod->n[in->lod_level - 1] - 1 : -1;
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    fl_meta_set(x, "MaxIndex", 0, FL_I32, max ? &s : &none);
    if (out && in->lod_level)
        out->lod_level = in->lod_level - 1; /* the kernel sets the LoD */
    return FL_OK;
}

static fl_err infer_pool_grad(fl_infer *x)
{
    const fl_meta *max = fl_meta_in(x, "MaxIndex", 0);
    const fl_meta *dy = fl_meta_in(x, "Out@GRAD", 0);
    FL_TRY(fl_infer_grad_of_rule(x));
    if (pool_of(fl_meta_attr(x, "pooltype")->s) != MAX)
        return FL_OK;
    if (!max || max->dtype != FL_I32 ||
        (fl_meta_running(x) && !fl_shape_equal(&max->shape, &dy->shape)))
        return fl_fail(FL_ESHAPE,
                       "sequence_pool_grad: MaxIndex is not that of Out");
    return FL_OK;
}

const fl_op_def fl_op_sequence_pool = {
    .type = "sequence_pool",
    .in = {{"X", FL_GRAD_UNREAD}},
    .out = {{"Out"}, {"MaxIndex", FL_INTERMEDIATE | FL_OPTIONAL}},
    .attr =
        {
            {"pooltype", FL_ATTR_STRING, .s = "AVERAGE"},
            {"is_test", FL_ATTR_BOOL, .b = false},
            {"pad_value", FL_ATTR_FLOAT, .f = 0},
        },
    .infer = infer_pool,
    .run = sequence_pool,
    .grad_in = {"X", "MaxIndex", "Out@GRAD"},
    .grad_run = sequence_pool_grad,
    .grad_infer = infer_pool_grad,
};

#endif
