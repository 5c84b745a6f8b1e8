/* SPDX-License-Identifier: Apache-2.0 */
/* The same elements in another shape: Out is a view of X.
 *
 *     reshape     `shape`: 0 copies X's dim, one -1 is what is left; or the
 *                 numbers that Shape (or the ShapeTensor) hold at run time
 *     squeeze     without the `axes` of size 1 (none given: all such)
 *     unsqueeze   with a 1 at each of `axes`, counted in the result
 *     flatten     [dims before `axis` multiplied, dims from it on multiplied]
 *
 * gradient: X@GRAD = Out@GRAD in the shape of X. The forms with a 2 take that
 * shape from XShape and so let X go early. */
#include "kernel/move.h"

#include <string.h>

/* --- Shapes ------------------------------------------------------------ */

static fl_err bad_shape(const char *type, const fl_shape *want,
                        const fl_shape *x)
{
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    return fl_fail(FL_ESHAPE, "%s: X %s does not fit into shape %s", type,
                   fl_shape_text(x, s), fl_shape_text(want, t));
}

/* Fill in the 0 and -1 of the wanted shape. If X has unknown dims, so may the
 * result: a 0 copies one, and a -1 stays. */
static fl_err fill_in(const char *type, const fl_shape *want, const fl_shape *x,
                      fl_shape *out)
{
    int open = -1;
    *out = *want;
    for (int i = 0; i < out->rank; i++) {
        if (out->dim[i] == 0 && i >= x->rank)
            return bad_shape(type, want, x);
        if (out->dim[i] == 0)
            out->dim[i] = x->dim[i];
        else if (out->dim[i] < -1 || (out->dim[i] == -1 && open >= 0))
            return bad_shape(type, want, x);
        else if (out->dim[i] == -1)
            open = i;
    }
    int64_t all = fl_shape_numel(x);
    if (open >= 0 && all >= 0) {
        out->dim[open] = 1;
        int64_t rest = fl_shape_numel(out);
        out->dim[open] = rest > 0 ? all / rest : 0;
    }
    int64_t made = fl_shape_numel(out);
    if (all >= 0 && made != all)
        return bad_shape(type, want, x);
    return FL_OK;
}

static bool shape_is_input(const fl_infer *x)
{
    return fl_meta_count_in(x, "Shape") || fl_meta_count_in(x, "ShapeTensor");
}

/* Set Out; it keeps the sequences of X if it has the same rows. */
static void set_out(fl_infer *x, const fl_shape *s)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta_set(x, "Out", 0, in->dtype, s);
    if (s->rank && in->shape.rank && s->dim[0] == in->shape.dim[0])
        fl_meta_share_lod(x, "X", "Out");
}

static fl_err reshape_shape(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape want, out;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Shape", FL_INDEXES));
    FL_TRY(fl_move_check_one(x, "ShapeTensor"));
    if (shape_is_input(x) && fl_meta_running(x)) {
        set_out(x, &in->shape); /* the kernel knows the real shape */
        return FL_OK;
    }
    FL_TRY(fl_move_shape(x, "shape", -1, &want));
    if (shape_is_input(x))
        out = want;
    else
        FL_TRY(fill_in(fl_meta_type(x), &want, &in->shape, &out));
    set_out(x, &out);
    return FL_OK;
}

static fl_err squeeze_shape(fl_infer *x)
{
    const fl_shape *in = &fl_meta_in(x, "X", 0)->shape;
    const fl_attr *axes = fl_meta_attr(x, "axes");
    bool drop[FL_MAX_RANK] = {0};
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    for (int i = 0; i < axes->n; i++) {
        int at;
        FL_TRY(fl_move_axis(x, "X", axes->longs[i], in->rank, &at));
        if (in->dim[at] != 1 && in->dim[at] != -1)
            return fl_fail(FL_ESHAPE, "%s: axis %d of X %s has %lld, not 1",
                           fl_meta_type(x), at, fl_shape_text(in, text),
                           (long long)in->dim[at]);
        drop[at] = true;
    }
    fl_shape out = {0};
    for (int i = 0; i < in->rank; i++)
        if (!(axes->n ? drop[i] : in->dim[i] == 1))
            out.dim[out.rank++] = in->dim[i];
    if (!out.rank) /* the result has one element */
        out = (fl_shape){1, {1}};
    set_out(x, &out);
    return FL_OK;
}

static fl_err unsqueeze_shape(fl_infer *x)
{
    const fl_shape *in = &fl_meta_in(x, "X", 0)->shape;
    const fl_attr *axes = fl_meta_attr(x, "axes");
    fl_shape out = *in;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (in->rank + axes->n > FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: %d dimensions and %d more, at most %d",
                       fl_meta_type(x), in->rank, axes->n, FL_MAX_RANK);
    for (int i = 0; i < axes->n; i++) {
        int at;
        FL_TRY(fl_move_axis(x, "X", axes->longs[i], out.rank + 1, &at));
        memmove(out.dim + at + 1, out.dim + at,
                (size_t)(out.rank - at) * sizeof *out.dim);
        out.dim[at] = 1;
        out.rank++;
    }
    set_out(x, &out);
    return FL_OK;
}

static fl_err flatten_shape(fl_infer *x)
{
    const fl_shape *in = &fl_meta_in(x, "X", 0)->shape;
    int64_t axis = fl_meta_attr(x, "axis")->i;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (axis < 0 || axis > in->rank)
        return fl_fail(FL_ESHAPE, "%s: axis %lld is not an axis of X %s",
                       fl_meta_type(x), (long long)axis,
                       fl_shape_text(in, text));
    fl_shape out = {2,
                    {fl_shape_span(in, 0, (int)axis),
                     fl_shape_span(in, (int)axis, in->rank)}};
    set_out(x, &out);
    return FL_OK;
}

/* The forms with a 2: Out by the same rule, and XShape. */
static fl_err reshape2_shape(fl_infer *x)
{
    FL_TRY(fl_infer_xshape(x));
    return reshape_shape(x);
}

static fl_err squeeze2_shape(fl_infer *x)
{
    FL_TRY(fl_infer_xshape(x));
    return squeeze_shape(x);
}

static fl_err unsqueeze2_shape(fl_infer *x)
{
    FL_TRY(fl_infer_xshape(x));
    return unsqueeze_shape(x);
}

static fl_err flatten2_shape(fl_infer *x)
{
    FL_TRY(fl_infer_xshape(x));
    return flatten_shape(x);
}

/* Out@GRAD must have as many elements as X@GRAD, whose shape is known here. */
static fl_err check_count(fl_infer *x)
{
    const fl_meta *dy = fl_meta_in(x, "Out@GRAD", 0);
    const fl_meta *dx = fl_meta_out(x, "X@GRAD", 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (dx && fl_meta_running(x) &&
        (fl_shape_numel(&dx->shape) != fl_shape_numel(&dy->shape) ||
         dx->dtype != dy->dtype))
        return fl_fail(FL_ESHAPE, "%s: Out@GRAD is %s%s, but X is %s%s",
                       fl_meta_type(x), fl_dtype_name(dy->dtype),
                       fl_shape_text(&dy->shape, s), fl_dtype_name(dx->dtype),
                       fl_shape_text(&dx->shape, t));
    return FL_OK;
}

static fl_err grad_by_x(fl_infer *x)
{
    fl_meta *dx = fl_meta_out(x, "X@GRAD", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_ANY));
    if (dx)
        *dx = *fl_meta_in(x, "X", 0);
    return check_count(x);
}

static fl_err grad_by_xshape(fl_infer *x)
{
    FL_TRY(fl_infer_xshape_grad(x));
    return check_count(x);
}

/* --- Kernels ----------------------------------------------------------- */

static fl_err view(fl_call *c)
{
    return fl_view(c, "X", "Out");
}

static fl_err reshape(fl_call *c)
{
    fl_shape want, out;
    size_t bytes;
    if (!fl_in_count(c, "Shape") && !fl_in_count(c, "ShapeTensor"))
        return view(c);
    FL_TRY(fl_move_numbers(c, "Shape", "ShapeTensor", &want.rank, want.dim));
    FL_TRY(fill_in(c->def->type, &want, &fl_in(c, "X")->shape, &out));
    FL_TRY(view(c));
    fl_tensor *y = fl_out(c, "Out");
    FL_TRY(fl_shape_bytes(&out, y->dtype, &bytes));
    if (!out.rank || out.dim[0] != y->shape.dim[0])
        fl_lod_fini(&y->lod);
    y->shape = out;
    return FL_OK;
}

static fl_err reshape_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (dx)
        memmove(dx->data, dy->data, fl_tensor_bytes(dy));
    return FL_OK;
}

/* --- Tables ------------------------------------------------------------ */

const fl_op_def fl_op_reshape = {
    .type = "reshape",
    .in =
        {
            {"X"},
            {"Shape", FL_OPTIONAL | FL_NOGRAD | FL_SHAPES},
            {"ShapeTensor", FL_OPTIONAL | FL_NOGRAD | FL_MANY | FL_SHAPES},
        },
    .out = {{"Out", FL_VIEW}},
    .attr = {{"shape", FL_ATTR_INTS}},
    .infer = reshape_shape,
    .run = reshape,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_x,
};

const fl_op_def fl_op_reshape2 = {
    .type = "reshape2",
    .in =
        {
            {"X"},
            {"Shape", FL_OPTIONAL | FL_NOGRAD | FL_SHAPES},
            {"ShapeTensor", FL_OPTIONAL | FL_NOGRAD | FL_MANY | FL_SHAPES},
        },
    .out = {{"Out", FL_VIEW}, {"XShape", FL_INTERMEDIATE}},
    .attr = {{"shape", FL_ATTR_INTS}},
    .infer = reshape2_shape,
    .run = reshape,
    .grad_in = {"XShape", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_xshape,
};

const fl_op_def fl_op_squeeze = {
    .type = "squeeze",
    .in = {{"X"}},
    .out = {{"Out", FL_VIEW}},
    .attr = {{"axes", FL_ATTR_INTS}},
    .infer = squeeze_shape,
    .run = view,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_x,
};

const fl_op_def fl_op_squeeze2 = {
    .type = "squeeze2",
    .in = {{"X"}},
    .out = {{"Out", FL_VIEW}, {"XShape", FL_INTERMEDIATE}},
    .attr = {{"axes", FL_ATTR_INTS}},
    .infer = squeeze2_shape,
    .run = view,
    .grad_in = {"XShape", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_xshape,
};

const fl_op_def fl_op_unsqueeze = {
    .type = "unsqueeze",
    .in = {{"X"}},
    .out = {{"Out", FL_VIEW}},
    .attr = {{"axes", FL_ATTR_INTS, .required = true}},
    .infer = unsqueeze_shape,
    .run = view,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_x,
};

const fl_op_def fl_op_unsqueeze2 = {
    .type = "unsqueeze2",
    .in = {{"X"}},
    .out = {{"Out", FL_VIEW}, {"XShape", FL_INTERMEDIATE}},
    .attr = {{"axes", FL_ATTR_INTS, .required = true}},
    .infer = unsqueeze2_shape,
    .run = view,
    .grad_in = {"XShape", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_xshape,
};

const fl_op_def fl_op_flatten = {
    .type = "flatten",
    .in = {{"X"}},
    .out = {{"Out", FL_VIEW}},
    .attr = {{"axis", FL_ATTR_INT, .i = 1}},
    .infer = flatten_shape,
    .run = view,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_x,
};

const fl_op_def fl_op_flatten2 = {
    .type = "flatten2",
    .in = {{"X"}},
    .out = {{"Out", FL_VIEW}, {"XShape", FL_INTERMEDIATE}},
    .attr = {{"axis", FL_ATTR_INT, .i = 1}},
    .infer = flatten2_shape,
    .run = view,
    .grad_in = {"XShape", "Out@GRAD"},
    .grad_run = reshape_grad,
    .grad_infer = grad_by_xshape,
};
