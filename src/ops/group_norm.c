/* SPDX-License-Identifier: Apache-2.0 */
/* group_norm  normalises the channels of each image in `groups` groups:
 *             Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias,
 *             Mean and Variance [N,groups], Scale and Bias for each channel
 * gradient    with z = (X - Mean) * r, r = 1 / sqrt(Variance + epsilon) and
 *             d = Y@GRAD * Scale, over each group of n elements:
 *             X@GRAD = r * (d - sum(d) / n - z * sum(d * z) / n)
 *             Scale@GRAD = sum of Y@GRAD * z, Bias@GRAD = sum of Y@GRAD */
#define FL_SELF "ops/group_norm.c"
#include "op/real.h"

#ifndef FL_OPS_GROUP_NORM_C
#define FL_OPS_GROUP_NORM_C

#include <string.h>

/* X as images of channels in groups. */
typedef struct groups {
    int64_t images, groups, channels; /* channels of a group */
    int64_t size;                     /* elements of a channel */
} groups;

static groups groups_of(const fl_call *c)
{
    const fl_shape *s = &fl_in(c, "X")->shape;
    const int64_t n = fl_attr_i64(c, "groups");
    return (groups){s->dim[0], n, s->dim[1] / n, fl_shape_span(s, 2, s->rank)};
}

#endif
#ifdef REAL

static const REAL *FN(values)(const fl_tensor *t)
{
    return t ? t->data : NULL;
}

/* One group: its mean and variance, then its elements. */
static void FN(normalise)(groups g, int64_t first, double epsilon,
                          const REAL *scale, const REAL *bias, const REAL *x,
                          REAL *mean, REAL *variance, REAL *y)
{
    const int64_t n = g.channels * g.size;
    const REAL m = FN(fl_sum)(n, x) / (REAL)n;
    *mean = m;
    *variance = FN(fl_dot_from)(n, x, m, x, m) / (REAL)n;
    const REAL r = 1 / RM(sqrt)(*variance + (REAL)epsilon);
    for (int64_t k = 0; k < g.channels; k++) {
        const REAL a = scale ? scale[first + k] : 1;
        const REAL b = bias ? bias[first + k] : 0;
        for (int64_t i = k * g.size; i < (k + 1) * g.size; i++)
            y[i] = (x[i] - m) * r * a + b;
    }
}

static fl_err FN(group_norm)(fl_call *c)
{
    const groups g = groups_of(c);
    const REAL *scale = FN(values)(fl_in(c, "Scale"));
    const REAL *bias = FN(values)(fl_in(c, "Bias"));
    const REAL *x = fl_in(c, "X")->data;
    REAL *y = fl_out(c, "Y")->data, *mean = fl_out(c, "Mean")->data;
    REAL *variance = fl_out(c, "Variance")->data;
    const int64_t n = g.channels * g.size;
    for (int64_t i = 0; n && i < g.images * g.groups; i++)
        FN(normalise)
    (g, i % g.groups * g.channels, (double)fl_attr_f32(c, "epsilon"), scale,
     bias, x + i * n, mean + i, variance + i, y + i * n);
    return FL_OK;
}

/* Add the contribution of a group to the gradients of its channels and of X. */
typedef struct FN(slopes) {
    const REAL *scale;
    REAL *dx, *dscale, *dbias; /* NULL: not needed */
} FN(slopes);

static void FN(slope)(groups g, int64_t first, REAL mean, REAL r, const REAL *x,
                      const REAL *dy, FN(slopes) to, REAL *dx)
{
    const REAL n = (REAL)(g.channels * g.size);
    REAL sum = 0, sum_z = 0;
    for (int64_t k = 0; k < g.channels; k++) {
        const REAL a = to.scale ? to.scale[first + k] : 1;
        const int64_t at = k * g.size;
        const REAL d = FN(fl_sum)(g.size, dy + at);
        const REAL dz = FN(fl_dot_from)(g.size, x + at, mean, dy + at, 0) * r;
        if (to.dbias)
            to.dbias[first + k] += d;
        if (to.dscale)
            to.dscale[first + k] += dz;
        sum += d * a;
        sum_z += dz * a;
    }
    for (int64_t i = 0; dx && i < g.channels * g.size; i++) {
        const REAL a = to.scale ? to.scale[first + i / g.size] : 1;
        const REAL z = (x[i] - mean) * r;
        dx[i] = r * (dy[i] * a - sum / n - z * sum_z / n);
    }
}

static fl_err FN(group_norm_grad)(fl_call *c)
{
    const groups g = groups_of(c);
    const REAL *x = fl_in(c, "X")->data, *dy = fl_in(c, "Y@GRAD")->data;
    const REAL *mean = fl_in(c, "Mean")->data;
    const REAL *variance = fl_in(c, "Variance")->data;
    const REAL epsilon = fl_attr_f32(c, "epsilon");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    const FN(slopes) to = {FN(values)(fl_in(c, "Scale")), dx ? dx->data : NULL,
                           fl_cleared(fl_out(c, "Scale@GRAD")),
                           fl_cleared(fl_out(c, "Bias@GRAD"))};
    const int64_t n = g.channels * g.size, all = g.groups * g.channels;
    double *total = fl_scratch(c, all, 2 * sizeof *total);
    if (!total)
        return FL_ENOMEM;
    FN(fl_rows_clear)(all, to.dscale, total);
    FN(fl_rows_clear)(all, to.dbias, total + all);
    for (int64_t i = 0; n && i < g.images * g.groups; i++) {
        const REAL r = 1 / RM(sqrt)(variance[i] + epsilon);
        FN(slope)
        (g, i % g.groups * g.channels, mean[i], r, x + i * n, dy + i * n, to,
         to.dx ? to.dx + i * n : NULL);
        if ((i + 1) % g.groups)
            continue;
        FN(fl_rows_added)(all, i / g.groups, g.images, to.dscale, total);
        FN(fl_rows_added)(all, i / g.groups, g.images, to.dbias, total + all);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(group_norm)
FL_REAL_KERNEL(group_norm_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_shape *s = &in->shape;
    const int64_t n = fl_meta_attr(x, "groups")->i;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (s->rank < 2 || n < 1 || (s->dim[1] >= 0 && s->dim[1] % n))
        return fl_fail(FL_ESHAPE,
                       "%s: X is %s in %lld groups, expected [N,C,..] whose C "
                       "they divide",
                       fl_meta_type(x), fl_shape_text(s, text), (long long)n);
    const fl_shape channels = {1, {s->dim[1]}}, of_groups = {2, {s->dim[0], n}};
    FL_TRY(fl_meta_expect(x, "Scale", in->dtype, &channels));
    FL_TRY(fl_meta_expect(x, "Bias", in->dtype, &channels));
    fl_meta_set(x, "Y", 0, in->dtype, s);
    fl_meta_set(x, "Mean", 0, in->dtype, &of_groups);
    fl_meta_set(x, "Variance", 0, in->dtype, &of_groups);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(fl_infer_grad_of_rule(x));
    const fl_shape of_groups = {
        2, {in->shape.dim[0], fl_meta_attr(x, "groups")->i}};
    FL_TRY(fl_meta_expect(x, "Mean", in->dtype, &of_groups));
    return fl_meta_expect(x, "Variance", in->dtype, &of_groups);
}

const fl_op_def fl_op_group_norm = {
    .type = "group_norm",
    .in = {{"X"}, {"Scale", FL_OPTIONAL}, {"Bias", FL_OPTIONAL}},
    .out = {{"Y"}, {"Mean", FL_INTERMEDIATE}, {"Variance", FL_INTERMEDIATE}},
    .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-5f},
             {"groups", FL_ATTR_INT, .i = 1}},
    .infer = infer,
    .run = group_norm,
    .grad_in = {"X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"},
    .grad_run = group_norm_grad,
    .grad_infer = infer_grad,
};

#endif
