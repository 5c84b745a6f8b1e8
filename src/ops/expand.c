/* SPDX-License-Identifier: Apache-2.0 */
/* expand    Out = X repeated expand_times[i] times along dimension i; those may
 *           be in ExpandTimes, or one each in expand_times_tensor
 * gradient  X@GRAD = the sum of all its copies in Out@GRAD */
#define FL_SELF "ops/expand.c"
#include "kernel/move.h"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(add_run)(int64_t n, REAL *to, int64_t step,
                                  const REAL *from)
{
    if (step == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] += from[i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i * step] += from[i];
}

/* b walks over Out@GRAD in order, so its innermost step there is 1. */
static void FN(add_box)(fl_box *b, void *dx, const void *dy)
{
    int last = b->rank - 1;
    int64_t n = last < 0 ? 1 : b->dim[last], step = last < 0 ? 1 : b->to[last];
    do {
        FN(add_run)
        (n, (REAL *)dx + b->to_at, step, (const REAL *)dy + b->from_at);
    } while (fl_box_next(b));
}

#else

#include <string.h>

static fl_err multiply(int n, const int64_t *times, fl_shape *s)
{
    char text[FL_SHAPE_TEXT];
    if (n != s->rank)
        return fl_fail(FL_ESHAPE, "expand: %d expand_times, X %s has %d dims",
                       n, fl_shape_text(s, text), s->rank);
    for (int i = 0; i < s->rank; i++) {
        if (times[i] < 1)
            return fl_fail(FL_EINVAL,
                           "expand: expand_times %d is %lld, "
                           "expected at least 1",
                           i, (long long)times[i]);
        s->dim[i] = fl_dim_mul(s->dim[i], times[i]);
    }
    return FL_OK;
}

static fl_err infer_expand(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *times = fl_meta_attr(x, "expand_times");
    const bool given = fl_meta_count_in(x, "ExpandTimes") ||
                       fl_meta_count_in(x, "expand_times_tensor");
    fl_shape s = in->shape;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "ExpandTimes", FL_INDEXES));
    FL_TRY(fl_move_check_one(x, "expand_times_tensor"));
    if (given && fl_meta_running(x))
        return FL_OK; /* the kernel resizes it */
    for (int i = 0; given && i < s.rank; i++)
        s.dim[i] = -1;
    if (given) {
        fl_meta_set(x, "Out", 0, in->dtype, &s);
        return FL_OK;
    }
    FL_TRY(multiply(times->n, times->longs, &s));
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (s.rank && times->longs[0] == 1)
        fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

/* The gradient computes the factors from both shapes. */
static fl_err infer_expand_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_meta *dy = fl_meta_in(x, "Out@GRAD", 0);
    fl_meta *dx = fl_meta_out(x, "X@GRAD", 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_SET(in->dtype)));
    bool fits = in->shape.rank == dy->shape.rank;
    for (int i = 0; fits && i < in->shape.rank; i++) {
        const int64_t n = in->shape.dim[i], all = dy->shape.dim[i];
        fits = n < 0 || all < 0 || (n ? all >= n && all % n == 0 : !all);
    }
    if (!fits)
        return fl_fail(FL_ESHAPE,
                       "expand_grad: Out@GRAD is %s, which is no multiple of "
                       "X %s",
                       fl_shape_text(&dy->shape, t),
                       fl_shape_text(&in->shape, s));
    if (dx)
        *dx = *in;
    return FL_OK;
}

/* Out as copies of X, which has elements: each dimension is split into the
 * number of the copy and the index in X. */
static fl_box copies(const fl_tensor *x, const fl_tensor *out, bool back)
{
    int64_t xs[FL_MAX_RANK], ys[FL_MAX_RANK];
    fl_box b = {0};
    fl_box_steps(&x->shape, xs);
    fl_box_steps(&out->shape, ys);
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t n = x->shape.dim[i], far = ys[i] * n;
        fl_box_dim(&b, out->shape.dim[i] / n, back ? 0 : far, back ? far : 0);
        fl_box_dim(&b, n, back ? xs[i] : ys[i], back ? ys[i] : xs[i]);
    }
    return b;
}

static fl_err size_out(fl_call *c, const fl_tensor *x)
{
    fl_value *out = fl_out_value(c, "Out", 0);
    fl_shape s = x->shape;
    int64_t times[FL_MAX_RANK];
    int n;
    FL_TRY(fl_move_numbers(c, "ExpandTimes", "expand_times_tensor", &n, times));
    FL_TRY(multiply(n, times, &s));
    out->kind = FL_LOD_TENSOR;
    return fl_tensor_resize(&out->tensor, x->dtype, &s);
}

static fl_err expand(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    if (fl_in_count(c, "ExpandTimes") || fl_in_count(c, "expand_times_tensor"))
        FL_TRY(size_out(c, x));
    if (!fl_tensor_numel(x))
        return FL_OK;
    fl_box b = copies(x, y, false);
    fl_box_copy(&b, fl_dtype_size(x->dtype), y->data, x->data);
    return FL_OK;
}

static fl_err expand_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (!dx || !fl_tensor_numel(dx))
        return FL_OK;
    memset(dx->data, 0, fl_tensor_bytes(dx));
    fl_box b = copies(dx, dy, true);
    if (dy->dtype == FL_F64)
        add_box_f64(&b, dx->data, dy->data);
    else
        add_box_f32(&b, dx->data, dy->data);
    return FL_OK;
}

const fl_op_def fl_op_expand = {
    .type = "expand",
    .in = {{"X"},
           {"ExpandTimes", FL_OPTIONAL | FL_NOGRAD | FL_SHAPES},
           {"expand_times_tensor",
            FL_OPTIONAL | FL_NOGRAD | FL_MANY | FL_SHAPES}},
    .out = {{"Out"}},
    .attr = {{"expand_times", FL_ATTR_INTS}},
    .infer = infer_expand,
    .run = expand,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = expand_grad,
    .grad_infer = infer_expand_grad,
};

#endif
