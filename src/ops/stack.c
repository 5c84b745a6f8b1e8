/* stack     Y = the X side by side along a new `axis`
 * gradient  each X@GRAD is its slice of Y@GRAD */
#include "ops/move.h"

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

static fl_err infer_stack_grad(fl_infer *x)
{
    const fl_meta *dy = fl_meta_in(x, "Y@GRAD", 0);
    int axis, n = fl_meta_count_out(x, "X@GRAD");
    FL_TRY(fl_meta_check(x, "Y@GRAD", FL_ANY));
    FL_TRY(fl_move_axis(x, "Y@GRAD", fl_meta_attr(x, "axis")->i, dy->shape.rank,
                        &axis));
    if (dy->shape.dim[axis] != n)
        return fl_fail(FL_ESHAPE, "stack_grad: Y@GRAD has %lld, X@GRAD are %d",
                       (long long)dy->shape.dim[axis], n);
    fl_shape s = {0};
    for (int i = 0; i < dy->shape.rank; i++)
        if (i != axis)
            s.dim[s.rank++] = dy->shape.dim[i];
    for (int i = 0; i < n; i++)
        fl_meta_set(x, "X@GRAD", i, dy->dtype, &s);
    return FL_OK;
}

/* Runs of one X in Y: how many, and of how many bytes. */
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

static fl_err stack_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Y@GRAD");
    size_t bytes;
    int n = fl_out_count(c, "X@GRAD");
    int64_t outer = runs(c, dy, &bytes);
    for (int i = 0; i < n; i++) {
        fl_tensor *dx = fl_out_at(c, "X@GRAD", i);
        if (dx)
            fl_move_runs(outer, bytes, dx->data, bytes,
                         (const char *)dy->data + (size_t)i * bytes,
                         (size_t)n * bytes);
    }
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
