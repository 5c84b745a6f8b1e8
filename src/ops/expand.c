/* expand    Out = X repeated expand_times[i] times along dimension i
 * gradient  X@GRAD = the sum of all its copies in Out@GRAD */
#define FL_SELF "ops/expand.c"
#include "op/real.h"
#include "ops/move.h"
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

/* b goes over Out@GRAD in order, so that its last step there is 1. */
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

static fl_err infer_expand(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *times = fl_meta_attr(x, "expand_times");
    char text[FL_SHAPE_TEXT];
    fl_shape s = in->shape;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (times->n != s.rank)
        return fl_fail(FL_ESHAPE, "expand: %d expand_times, X %s has %d dims",
                       times->n, fl_shape_text(&s, text), s.rank);
    for (int i = 0; i < s.rank; i++) {
        int64_t t = times->longs[i];
        if (t < 1)
            return fl_fail(FL_EINVAL,
                           "expand: expand_times %d is %lld, "
                           "expected at least 1",
                           i, (long long)t);
        s.dim[i] = fl_dim_mul(s.dim[i], t);
    }
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (s.rank && times->longs[0] == 1)
        fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

/* Out as copies of X: each dimension is cut into (copy, place in X). */
static fl_box copies(const fl_call *c, const fl_tensor *x, const fl_tensor *out,
                     bool back)
{
    const int64_t *times = fl_attr_get(c, "expand_times")->longs;
    int64_t xs[FL_MAX_RANK], ys[FL_MAX_RANK];
    fl_box b = {0};
    fl_box_steps(&x->shape, xs);
    fl_box_steps(&out->shape, ys);
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t n = x->shape.dim[i], far = ys[i] * n;
        fl_box_dim(&b, times[i], back ? 0 : far, back ? far : 0);
        fl_box_dim(&b, n, back ? xs[i] : ys[i], back ? ys[i] : xs[i]);
    }
    return b;
}

static fl_err expand(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    fl_box b = copies(c, x, y, false);
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
    fl_box b = copies(c, dx, dy, true);
    if (dy->dtype == FL_F64)
        add_box_f64(&b, dx->data, dy->data);
    else
        add_box_f32(&b, dx->data, dy->data);
    return FL_OK;
}

const fl_op_def fl_op_expand = {
    .type = "expand",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"expand_times", FL_ATTR_INTS, .required = true}},
    .infer = infer_expand,
    .run = expand,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = expand_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
