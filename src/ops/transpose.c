/* SPDX-License-Identifier: Apache-2.0 */
/* transpose, transpose2: dimension i of Out is dimension axis[i] of X
 * gradient: the inverse permutation. transpose2 takes the shape of X from
 * XShape. */
#include "kernel/move.h"

static fl_err transpose_shape(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *axis = fl_meta_attr(x, "axis");
    bool used[FL_MAX_RANK] = {0};
    char text[FL_SHAPE_TEXT];
    fl_shape out = {.rank = in->shape.rank};
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (axis->n != out.rank)
        return fl_fail(FL_ESHAPE, "%s: axis has %d numbers, X %s has %d dims",
                       fl_meta_type(x), axis->n,
                       fl_shape_text(&in->shape, text), out.rank);
    for (int i = 0; i < out.rank; i++) {
        int64_t a = axis->longs[i];
        if (a < 0 || a >= out.rank || used[a])
            return fl_fail(
                FL_ESHAPE,
                "%s: axis %lld is listed twice, or is not an axis of X %s",
                fl_meta_type(x), (long long)a, fl_shape_text(&in->shape, text));
        used[a] = true;
        out.dim[i] = in->shape.dim[a];
    }
    fl_meta_set(x, "Out", 0, in->dtype, &out);
    return FL_OK;
}

static fl_err transpose2_shape(fl_infer *x)
{
    FL_TRY(fl_infer_xshape(x));
    return transpose_shape(x);
}

/* Copy between `y`, the permuted tensor, and `x`. */
static void permute(const fl_call *c, const fl_tensor *x, const fl_tensor *y,
                    bool back)
{
    const int64_t *axis = fl_attr_get(c, "axis")->longs;
    int64_t xs[FL_MAX_RANK], ys[FL_MAX_RANK];
    size_t size = fl_dtype_size(y->dtype);
    fl_box b = {0};
    fl_box_steps(&x->shape, xs);
    fl_box_steps(&y->shape, ys);
    for (int i = 0; i < y->shape.rank; i++)
        fl_box_dim(&b, y->shape.dim[i], back ? xs[axis[i]] : ys[i],
                   back ? ys[i] : xs[axis[i]]);
    if (back)
        fl_box_copy(&b, size, x->data, y->data);
    else
        fl_box_copy(&b, size, y->data, x->data);
}

static fl_err transpose(fl_call *c)
{
    permute(c, fl_in(c, "X"), fl_out(c, "Out"), false);
    return FL_OK;
}

static fl_err transpose_grad(fl_call *c)
{
    permute(c, fl_out(c, "X@GRAD"), fl_in(c, "Out@GRAD"), true);
    return FL_OK;
}

static fl_err infer_transpose2_grad(fl_infer *x)
{
    const fl_attr *axis = fl_meta_attr(x, "axis");
    const fl_shape *dy = &fl_meta_in(x, "Out@GRAD", 0)->shape;
    const fl_shape *of = &fl_meta_in(x, "XShape", 0)->shape;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    bool fits = axis->n == dy->rank && dy->rank + 1 == of->rank;
    bool used[FL_MAX_RANK] = {0};
    for (int i = 0; fits && i < dy->rank; i++) {
        int64_t a = axis->longs[i];
        fits =
            a >= 0 && a < dy->rank && !used[a] && dy->dim[i] == of->dim[a + 1];
        used[fits ? a : 0] = true;
    }
    if (!fits)
        return fl_fail(FL_ESHAPE,
                       "transpose2_grad: Out@GRAD is %s, but XShape is %s",
                       fl_shape_text(dy, s), fl_shape_text(of, t));
    return fl_infer_xshape_grad(x);
}

const fl_op_def fl_op_transpose = {
    .type = "transpose",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INTS, .required = true}},
    .infer = transpose_shape,
    .run = transpose,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = transpose_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

const fl_op_def fl_op_transpose2 = {
    .type = "transpose2",
    .in = {{"X"}},
    .out = {{"Out"}, {"XShape", FL_INTERMEDIATE}},
    .attr = {{"axis", FL_ATTR_INTS, .required = true}},
    .infer = transpose2_shape,
    .run = transpose,
    .grad_in = {"XShape", "Out@GRAD"},
    .grad_run = transpose_grad,
    .grad_infer = infer_transpose2_grad,
};
