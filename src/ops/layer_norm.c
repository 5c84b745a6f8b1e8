/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm   Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, row
 *              by row: dims before begin_norm_axis make the rows, the others a
 *              row's elements, which Scale and Bias have one each for
 * gradient     X@GRAD = (g - mean of g - n * mean of g * n) / deviation, with
 *              g = Y@GRAD * Scale and n = (X - mean) / deviation */
#define FL_SELF "ops/layer_norm.c"
#include "op/real.h"

#ifndef FL_OPS_LAYER_NORM_C
#define FL_OPS_LAYER_NORM_C

#include <string.h>

typedef struct rows {
    int64_t n, width;
} rows;

static rows rows_of(const fl_call *c)
{
    const fl_shape *s = &fl_in(c, "X")->shape;
    int axis = (int)fl_attr_i64(c, "begin_norm_axis");
    return (rows){fl_shape_span(s, 0, axis), fl_shape_span(s, axis, s->rank)};
}

static const void *data_of(const fl_tensor *t)
{
    return t ? t->data : NULL;
}

#endif
#ifdef REAL

FL_CLONES static void FN(norm_row)(int64_t n, const REAL *x, REAL mean,
                                   REAL inv, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * inv;
}

FL_CLONES static void FN(times)(int64_t n, const REAL *by, REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] *= by[i];
}

static fl_err FN(layer_norm)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data;
    const REAL *scale = data_of(fl_in(c, "Scale"));
    const REAL *bias = data_of(fl_in(c, "Bias"));
    REAL *y = fl_out(c, "Y")->data, *mean = fl_out(c, "Mean")->data;
    REAL *variance = fl_out(c, "Variance")->data;
    REAL epsilon = fl_attr_f32(c, "epsilon");
    rows at = rows_of(c);
    for (int64_t i = 0; i < at.n; i++, x += at.width, y += at.width) {
        mean[i] = FN(fl_sum)(at.width, x) / (REAL)at.width;
        variance[i] =
            FN(fl_dot_from)(at.width, x, mean[i], x, mean[i]) / (REAL)at.width;
        FN(norm_row)
        (at.width, x, mean[i], 1 / RM(sqrt)(variance[i] + epsilon), y);
        if (scale)
            FN(times)(at.width, scale, y);
        if (bias)
            FN(fl_add)(at.width, bias, y);
    }
    return FL_OK;
}

/* dx = (g - a - norm * b) * inv */
FL_CLONES static void FN(grad_row)(int64_t n, const REAL *g, const REAL *norm,
                                   REAL a, REAL b, REAL inv, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dx[i] = (g[i] - a - norm[i] * b) * inv;
}

FL_CLONES static void FN(add_product)(int64_t n, const REAL *x, const REAL *y,
                                      REAL *sum)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i] * y[i];
}

static fl_err FN(layer_norm_grad)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, *dy = fl_in(c, "Y@GRAD")->data;
    const REAL *scale = data_of(fl_in(c, "Scale"));
    const REAL *mean = fl_in(c, "Mean")->data;
    const REAL *variance = fl_in(c, "Variance")->data;
    REAL *dx = (REAL *)data_of(fl_out(c, "X@GRAD"));
    REAL *ds = (REAL *)data_of(fl_out(c, "Scale@GRAD"));
    REAL *db = (REAL *)data_of(fl_out(c, "Bias@GRAD"));
    rows at = rows_of(c);
    double *total_s =
        fl_scratch(c, at.width, 2 * (sizeof(double) + sizeof(REAL)));
    double *total_b = total_s + at.width;
    REAL *norm = (REAL *)(total_b + at.width), *g = norm + at.width;
    const REAL epsilon = fl_attr_f32(c, "epsilon");
    if (!total_s)
        return FL_ENOMEM;
    FN(fl_rows_clear)(at.width, ds, total_s);
    FN(fl_rows_clear)(at.width, db, total_b);
    for (int64_t i = 0; i < at.n; i++, x += at.width, dy += at.width) {
        REAL inv = 1 / RM(sqrt)(variance[i] + epsilon), width = (REAL)at.width;
        FN(norm_row)(at.width, x, mean[i], inv, norm);
        memcpy(g, dy, (size_t)at.width * sizeof *g);
        if (scale)
            FN(times)(at.width, scale, g);
        if (dx)
            FN(grad_row)
        (at.width, g, norm, FN(fl_sum)(at.width, g) / width,
         FN(fl_dot)(at.width, g, norm) / width, inv, dx + i * at.width);
        if (ds)
            FN(add_product)(at.width, dy, norm, ds);
        if (db)
            FN(fl_add)(at.width, dy, db);
        FN(fl_rows_added)(at.width, i, at.n, ds, total_s);
        FN(fl_rows_added)(at.width, i, at.n, db, total_b);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(layer_norm)
FL_REAL_KERNEL(layer_norm_grad)

/* Set the shapes of Scale and Bias (`width`), and of Mean and Variance (`n`).
 */
static fl_err check_x(const fl_infer *x, fl_shape *n, fl_shape *width)
{
    const fl_shape *s = &fl_meta_in(x, "X", 0)->shape;
    int64_t axis = fl_meta_attr(x, "begin_norm_axis")->i;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (axis < 1 || axis >= s->rank)
        return fl_fail(FL_ESHAPE,
                       "%s: begin_norm_axis is %lld, X is %s, expected 1 to %d",
                       fl_meta_type(x), (long long)axis, fl_shape_text(s, text),
                       s->rank - 1);
    *n = fl_shape_of((int)axis, s->dim);
    *n = (fl_shape){1, {fl_shape_numel(n)}};
    *width = fl_shape_of(s->rank - (int)axis, s->dim + axis);
    *width = (fl_shape){1, {fl_shape_numel(width)}};
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape n, width;
    FL_TRY(check_x(x, &n, &width));
    FL_TRY(fl_meta_expect(x, "Scale", in->dtype, &width));
    FL_TRY(fl_meta_expect(x, "Bias", in->dtype, &width));
    fl_meta_set(x, "Y", 0, in->dtype, &in->shape);
    fl_meta_set(x, "Mean", 0, in->dtype, &n);
    fl_meta_set(x, "Variance", 0, in->dtype, &n);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_dtype t = fl_meta_in(x, "X", 0)->dtype;
    fl_shape n, width;
    FL_TRY(check_x(x, &n, &width));
    FL_TRY(fl_meta_expect(x, "Mean", t, &n));
    FL_TRY(fl_meta_expect(x, "Variance", t, &n));
    return fl_infer_grad_of_rule(x);
}

const fl_op_def fl_op_layer_norm = {
    .type = "layer_norm",
    .in = {{"X"}, {"Scale", FL_OPTIONAL}, {"Bias", FL_OPTIONAL}},
    .out = {{"Y"}, {"Mean", FL_INTERMEDIATE}, {"Variance", FL_INTERMEDIATE}},
    .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-5f},
             {"begin_norm_axis", FL_ATTR_INT, .i = 1}},
    .infer = infer,
    .run = layer_norm,
    .grad_in = {"X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"},
    .grad_run = layer_norm_grad,
    .grad_infer = infer_grad,
};

#endif
