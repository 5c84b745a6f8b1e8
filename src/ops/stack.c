/* SPDX-License-Identifier: Apache-2.0 */
/* stack     Y = all X, as slices along a new `axis`
 * gradient  each X@GRAD is its slice of Y@GRAD
 *
 * unstack   Y* = the slices of X along `axis`, without that dimension
 * gradient  stack of the Y@GRAD */
#include "kernel/move.h"

static fl_err infer_stack(fl_infer *x)
{
    FL_TRY(fl_move_list(x, "X"));
    const fl_meta *first = fl_meta_in(x, "X", 0);
    int axis, n = fl_meta_count_in(x, "X"), rank = first->shape.rank + 1;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (rank > FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "stack: X has %d dimensions, at most %d",
                       rank - 1, FL_MAX_RANK - 1);
    FL_TRY(fl_move_axis(x, "X", fl_meta_attr(x, "axis")->i, rank, &axis));
    for (int i = 1; i < n; i++) {
        const fl_meta *m = fl_meta_in(x, "X", i);
        if (m->dtype != first->dtype ||
            !fl_shape_equal(&m->shape, &first->shape))
            return fl_fail(
                FL_ESHAPE, "stack: X 0 is %s%s, but X %d is %s%s",
                fl_dtype_name(first->dtype), fl_shape_text(&first->shape, s), i,
                fl_dtype_name(m->dtype), fl_shape_text(&m->shape, t));
    }
    fl_shape out = {.rank = rank};
    for (int i = 0, j = 0; i < rank; i++)
        out.dim[i] = i == axis ? n : first->shape.dim[j++];
    fl_meta_set(x, "Y", 0, first->dtype, &out);
    return FL_OK;
}

/* Check that `axis` has as many slices as there are outputs. */
static fl_err infer_slices(const fl_infer *x, const char *from, const char *to)
{
    const fl_meta *whole = fl_meta_in(x, from, 0);
    const fl_shape *in = &whole->shape;
    int axis, n = fl_meta_count_out(x, to);
    FL_TRY(fl_meta_check(x, from, FL_ANY));
    FL_TRY(fl_move_axis(x, from, fl_meta_attr(x, "axis")->i, in->rank, &axis));
    if (in->dim[axis] != n)
        return fl_fail(
            FL_ESHAPE,
            "%s: axis %d of %s has %lld elements, but there are %d %s",
            fl_meta_type(x), axis, from, (long long)in->dim[axis], n, to);
    fl_shape s = {0};
    for (int i = 0; i < in->rank; i++)
        if (i != axis)
            s.dim[s.rank++] = in->dim[i];
    if (!s.rank) /* slices of a vector have one element */
        s = (fl_shape){1, {1}};
    for (int i = 0; i < n; i++)
        fl_meta_set(x, to, i, whole->dtype, &s);
    return FL_OK;
}

static fl_err infer_stack_grad(fl_infer *x)
{
    return infer_slices(x, "Y@GRAD", "X@GRAD");
}

static fl_err infer_unstack(fl_infer *x)
{
    const int64_t num = fl_meta_attr(x, "num")->i;
    const int n = fl_meta_count_out(x, "Y");
    if (num && num != n)
        return fl_fail(FL_EINVAL, "unstack: num is %lld, but there are %d Y",
                       (long long)num, n);
    return infer_slices(x, "X", "Y");
}

/* The runs of one X in Y: their number and their size in bytes. */
static int64_t runs(const fl_call *c, const fl_tensor *y, size_t *bytes)
{
    int64_t axis = fl_attr_i64(c, "axis");
    if (axis < 0)
        axis += y->shape.rank;
    *bytes = (size_t)fl_shape_span(&y->shape, (int)axis + 1, y->shape.rank) *
             fl_dtype_size(y->dtype);
    return fl_shape_span(&y->shape, 0, (int)axis);
}

static fl_err stack(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Y");
    size_t bytes;
    int n = fl_in_count(c, "X");
    int64_t outer = runs(c, y, &bytes);
    for (int i = 0; i < n; i++)
        fl_move_runs(outer, bytes, (char *)y->data + (size_t)i * bytes,
                     (size_t)n * bytes, fl_in_at(c, "X", i)->data, bytes);
    return FL_OK;
}

static fl_err slices(const fl_call *c, const char *from, const char *to)
{
    const fl_tensor *whole = fl_in(c, from);
    size_t bytes;
    int n = fl_out_count(c, to);
    int64_t outer = runs(c, whole, &bytes);
    for (int i = 0; i < n; i++) {
        fl_tensor *part = fl_out_at(c, to, i);
        if (part)
            fl_move_runs(outer, bytes, part->data, bytes,
                         (const char *)whole->data + (size_t)i * bytes,
                         (size_t)n * bytes);
    }
    return FL_OK;
}

static fl_err stack_grad(fl_call *c)
{
    return slices(c, "Y@GRAD", "X@GRAD");
}

static fl_err unstack(fl_call *c)
{
    return slices(c, "X", "Y");
}

static fl_err make_unstack_grad(fl_grads *g)
{
    const fl_args *y = fl_desc_out(g->fwd, "Y");
    const fl_attr *axis = fl_desc_attr(g->fwd, "axis");
    fl_desc *d = fl_grad_emit(g, "stack");
    const char **names = fl_arena_alloc(g->arena, (size_t)y->n * sizeof *names);
    for (int i = 0; i < y->n; i++)
        names[i] = fl_grad_name(g->arena, y->name[i]);
    fl_desc_set_in(d, "X", y->n, names);
    fl_desc_set_out1(d, "Y", fl_grad_name(g->arena, fl_desc_in1(g->fwd, "X")));
    if (axis)
        fl_desc_set_attr(d, axis);
    return FL_OK;
}

const fl_op_def fl_op_stack = {
    .type = "stack",
    .in = {{"X", FL_MANY}},
    .out = {{"Y"}},
    .attr = {{"axis", FL_ATTR_INT, .i = 0}},
    .infer = infer_stack,
    .run = stack,
    .grad_in = {"Y@GRAD"},
    .grad_run = stack_grad,
    .grad_infer = infer_stack_grad,
};

const fl_op_def fl_op_unstack = {
    .type = "unstack",
    .in = {{"X"}},
    .out = {{"Y", FL_MANY}},
    .attr = {{"axis", FL_ATTR_INT, .i = 0}, {"num", FL_ATTR_INT}},
    .infer = infer_unstack,
    .run = unstack,
    .make_grad = make_unstack_grad,
};
