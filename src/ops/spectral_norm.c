/* SPDX-License-Identifier: Apache-2.0 */
/* spectral_norm   Out = Weight / sigma, sigma near its largest singular value
 *
 * Weight is read as a matrix M [h,w]: dimension `dim` are its rows, all others
 * its columns. power_iters times
 *
 *     v = M^T u / (|M^T u| + eps),  u = M v / (|M v| + eps)
 *
 * from U [h] and V [w], which stay as they are; then sigma = u . M v.
 *
 * gradient   M@GRAD = (Out@GRAD - (Out@GRAD . Out) * u v^T) / sigma
 *
 * u and v are taken as fixed, as is usual. (The original multiplies Out@GRAD
 * with 1 - sum(Out) * u v^T element by element, which is the gradient of
 * nothing; training by it would go astray.) */
#define FL_SELF "ops/spectral_norm.c"
#include "op/real.h"

#ifndef FL_OPS_SPECTRAL_NORM_C
#define FL_OPS_SPECTRAL_NORM_C

#include "kernel/softmax.h"

enum {
    MOST_ITERATIONS = 10000 /* 1 is usual; 2^31 would take too long */
};

#endif
#ifdef REAL

/* Weight as [outer, h, inner], and the vectors that belong to it. */
typedef struct FN(matrix) {
    fl_axis at;
    const REAL *m;
    REAL *u, *v, *mv; /* [h], [w], [h] */
    REAL sigma;
} FN(matrix);

static void FN(make_unit)(int64_t n, REAL eps, REAL *x)
{
    const REAL length = RM(sqrt)(FN(fl_dot)(n, x, x)) + eps;
    for (int64_t i = 0; i < n; i++)
        x[i] /= length;
}

/* v = M^T u */
static void FN(to_columns)(const FN(matrix) * a)
{
    const int64_t h = a->at.size, n = a->at.inner;
    const REAL *row = a->m;
    memset(a->v, 0, (size_t)(a->at.outer * n) * sizeof *a->v);
    for (int64_t i = 0; i < a->at.outer * h; i++, row += n)
        FN(fl_axpy)(n, a->u[i % h], row, a->v + i / h * n);
}

/* mv = M v */
static void FN(to_rows)(const FN(matrix) * a)
{
    const int64_t h = a->at.size, n = a->at.inner;
    const REAL *row = a->m;
    memset(a->mv, 0, (size_t)h * sizeof *a->mv);
    for (int64_t i = 0; i < a->at.outer * h; i++, row += n)
        a->mv[i % h] += FN(fl_dot)(n, row, a->v + i / h * n);
}

static fl_err FN(iterate)(fl_call *c, FN(matrix) * out)
{
    const fl_tensor *m = fl_in(c, "Weight");
    const REAL eps = fl_attr_f32(c, "eps");
    FN(matrix)
    a = {.at = fl_axis_of(&m->shape, fl_attr_i64(c, "dim")), .m = m->data};
    const int64_t h = a.at.size, w = a.at.outer * a.at.inner;
    a.u = fl_scratch(c, 2 * h + w, sizeof *a.u);
    if (!a.u)
        return FL_ENOMEM;
    a.v = a.u + h;
    a.mv = a.v + w;
    memcpy(a.u, fl_in(c, "U")->data, (size_t)h * sizeof *a.u);
    memcpy(a.v, fl_in(c, "V")->data, (size_t)w * sizeof *a.v);
    for (int64_t i = fl_attr_i64(c, "power_iters"); i > 0; i--) {
        FN(to_columns)(&a);
        FN(make_unit)(w, eps, a.v);
        FN(to_rows)(&a);
        memcpy(a.u, a.mv, (size_t)h * sizeof *a.u);
        FN(make_unit)(h, eps, a.u);
    }
    FN(to_rows)(&a);
    a.sigma = FN(fl_dot)(h, a.u, a.mv);
    *out = a;
    return FL_OK;
}

static fl_err FN(spectral_norm)(fl_call *c)
{
    FN(matrix) a;
    FL_TRY(FN(iterate)(c, &a));
    REAL *y = fl_out(c, "Out")->data;
    for (int64_t i = 0, n = fl_numel(c, "Weight"); i < n; i++)
        y[i] = a.m[i] / a.sigma;
    return FL_OK;
}

static fl_err FN(spectral_norm_grad)(fl_call *c)
{
    FN(matrix) a;
    FL_TRY(FN(iterate)(c, &a));
    const int64_t h = a.at.size, n = a.at.inner;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "Weight@GRAD")->data;
    const REAL by = FN(fl_dot)(fl_numel(c, "Weight"), dy, a.m) / a.sigma;
    for (int64_t i = 0; i < a.at.outer * h; i++)
        for (int64_t j = 0; j < n; j++, dx++, dy++)
            *dx = (*dy - by * a.u[i % h] * a.v[i / h * n + j]) / a.sigma;
    return FL_OK;
}

#else

FL_REAL_KERNEL(spectral_norm)
FL_REAL_KERNEL(spectral_norm_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "Weight", 0);
    const int64_t dim = fl_meta_attr(x, "dim")->i;
    const int64_t times = fl_meta_attr(x, "power_iters")->i;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "Weight", FL_REALS));
    const fl_shape *s = &in->shape;
    if (s->rank < 2)
        return fl_fail(FL_ESHAPE, "%s: Weight is %s, expected 2 dims or more",
                       fl_meta_type(x), fl_shape_text(s, text));
    if (dim < 0 || dim >= s->rank)
        return fl_fail(FL_EINVAL, "%s: dim is %lld, but Weight is %s",
                       fl_meta_type(x), (long long)dim, fl_shape_text(s, text));
    if (times < 0 || times > MOST_ITERATIONS)
        return fl_fail(FL_EINVAL, "%s: power_iters is %lld, expected 0 to %d",
                       fl_meta_type(x), (long long)times, MOST_ITERATIONS);
    fl_shape rest = *s;
    rest.dim[dim] = 1;
    const fl_shape h = {1, {s->dim[dim]}};
    const fl_shape w = {1, {fl_shape_span(&rest, 0, rest.rank)}};
    FL_TRY(fl_meta_expect(x, "U", in->dtype, &h));
    FL_TRY(fl_meta_expect(x, "V", in->dtype, &w));
    fl_meta_set(x, "Out", 0, in->dtype, s);
    return FL_OK;
}

const fl_op_def fl_op_spectral_norm = {
    .type = "spectral_norm",
    .in = {{"Weight"}, {"U", FL_NOGRAD}, {"V", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"dim", FL_ATTR_INT, .i = 0},
             {"power_iters", FL_ATTR_INT, .i = 1},
             {"eps", FL_ATTR_FLOAT, .f = 1e-12f}},
    .infer = infer,
    .run = spectral_norm,
    .grad_in = {"Weight", "U", "V", "Out@GRAD"},
    .grad_run = spectral_norm_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
