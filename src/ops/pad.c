/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that copy a box into a larger one, or out of it.
 *
 *   pad                Out = X with paddings[2i] elements of pad_value before,
 *                      and paddings[2i+1] after, along dim i
 *   pad_constant_like  Out = Y with as many after it as make the shape of X
 *   crop               Out = X from offsets[i] on, of `shape`, or of Y's; -1
 *                      is up to the end
 *   gradients          the part of Out@GRAD that came from X (or Y); of crop
 *                      zeros around it */
#include "kernel/move.h"

#include <string.h>

/* Copy the elements of the inner box from the outer box, or back. Returns the
 * offset in the outer box at which it begins. before[i * step]: number of
 * elements before it along dimension i. */
static int64_t nest(const fl_shape *inner, const fl_shape *outer,
                    const int64_t *before, int step, bool to, fl_box *b)
{
    int64_t in[FL_MAX_RANK], out[FL_MAX_RANK], first = 0;
    fl_box_steps(inner, in);
    fl_box_steps(outer, out);
    *b = (fl_box){0};
    for (int i = 0; i < inner->rank; i++) {
        fl_box_dim(b, inner->dim[i], to ? in[i] : out[i], to ? out[i] : in[i]);
        first += before ? before[i * step] * out[i] : 0;
    }
    return first;
}

static void copy_inner(const fl_tensor *outer, const int64_t *before, int step,
                       fl_tensor *inner)
{
    const size_t size = fl_dtype_size(inner->dtype);
    fl_box b;
    int64_t first = nest(&inner->shape, &outer->shape, before, step, true, &b);
    fl_box_copy(&b, size, inner->data,
                (const char *)outer->data + (size_t)first * size);
}

static void put_inner(const fl_tensor *inner, const int64_t *before, int step,
                      fl_tensor *outer)
{
    const size_t size = fl_dtype_size(inner->dtype);
    fl_box b;
    int64_t first = nest(&inner->shape, &outer->shape, before, step, false, &b);
    fl_box_copy(&b, size, (char *)outer->data + (size_t)first * size,
                inner->data);
}

static fl_err fill_all(float value, fl_tensor *y)
{
    const size_t size = fl_dtype_size(y->dtype);
    char element[sizeof(double)];
    FL_TRY(fl_convert(1, FL_F32, &value, y->dtype, element));
    for (int64_t i = 0, n = fl_tensor_numel(y); i < n; i++)
        memcpy((char *)y->data + (size_t)i * size, element, size);
    return FL_OK;
}

/* --- pad --- */

static fl_err pad(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    FL_TRY(fill_all(fl_attr_f32(c, "pad_value"), y));
    put_inner(fl_in(c, "X"), fl_attr_get(c, "paddings")->longs, 2, y);
    return FL_OK;
}

static fl_err pad_grad(fl_call *c)
{
    copy_inner(fl_in(c, "Out@GRAD"), fl_attr_get(c, "paddings")->longs, 2,
               fl_out(c, "X@GRAD"));
    return FL_OK;
}

static fl_err infer_pad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *paddings = fl_meta_attr(x, "paddings");
    fl_shape s = in->shape;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (paddings->n != 2 * s.rank)
        return fl_fail(FL_EINVAL, "%s: %d paddings for X with %d dims",
                       fl_meta_type(x), paddings->n, s.rank);
    for (int i = 0; i < paddings->n; i++) {
        if (paddings->longs[i] < 0)
            return fl_fail(FL_EINVAL,
                           "%s: paddings has %lld, expected 0 or more",
                           fl_meta_type(x), (long long)paddings->longs[i]);
        s.dim[i / 2] = fl_dim_add(s.dim[i / 2], paddings->longs[i]);
    }
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (paddings->n && !paddings->longs[0] && !paddings->longs[1])
        fl_meta_share_lod(x, "X",
                          "Out"); /* LoD stays if the rows are the same */
    return FL_OK;
}

/* --- pad_constant_like --- */

static fl_err pad_like(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    FL_TRY(fill_all(fl_attr_f32(c, "pad_value"), y));
    put_inner(fl_in(c, "Y"), NULL, 0, y);
    return FL_OK;
}

static fl_err pad_like_grad(fl_call *c)
{
    copy_inner(fl_in(c, "Out@GRAD"), NULL, 0, fl_out(c, "Y@GRAD"));
    return FL_OK;
}

static fl_err check_within(const fl_infer *x, const char *inner,
                           const char *outer)
{
    const fl_meta *a = fl_meta_in(x, inner, 0), *b = fl_meta_in(x, outer, 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    bool fits = a->dtype == b->dtype && a->shape.rank == b->shape.rank;
    for (int i = 0; fits && i < a->shape.rank; i++)
        fits = a->shape.dim[i] <= b->shape.dim[i] || b->shape.dim[i] < 0;
    if (fits)
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s %s%s is not within %s %s%s",
                   fl_meta_type(x), inner, fl_dtype_name(a->dtype),
                   fl_shape_text(&a->shape, s), outer, fl_dtype_name(b->dtype),
                   fl_shape_text(&b->shape, t));
}

static fl_err infer_pad_like(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Y", FL_ANY));
    FL_TRY(check_within(x, "Y", "X"));
    fl_meta_set(x, "Out", 0, in->dtype, &in->shape);
    return FL_OK;
}

static fl_err infer_pad_like_grad(fl_infer *x)
{
    const fl_meta *y = fl_meta_in(x, "Y", 0);
    FL_TRY(fl_meta_check(x, "Y", FL_ANY));
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_ANY));
    FL_TRY(check_within(x, "Y", "Out@GRAD"));
    fl_meta_set(x, "Y@GRAD", 0, y->dtype, &y->shape);
    return FL_OK;
}

/* --- crop --- */

static const int64_t *offsets_of(const fl_call *c)
{
    const fl_attr *offsets = fl_attr_get(c, "offsets");
    return offsets->n ? offsets->longs : NULL;
}

static fl_err crop(fl_call *c)
{
    copy_inner(fl_in(c, "X"), offsets_of(c), 1, fl_out(c, "Out"));
    return FL_OK;
}

static fl_err crop_grad(fl_call *c)
{
    fl_tensor *dx = fl_out(c, "X@GRAD");
    memset(dx->data, 0, fl_tensor_bytes(dx));
    put_inner(fl_in(c, "Out@GRAD"), offsets_of(c), 1, dx);
    return FL_OK;
}

/* The length along one dimension; -1: unknown, or in `want` up to the end. */
static fl_err crop_dim(const fl_infer *x, int i, int64_t from, int64_t want,
                       int64_t *out)
{
    const int64_t have = fl_meta_in(x, "X", 0)->shape.dim[i];
    *out = want >= 0 ? want : have < 0 ? -1 : have - from;
    if (from < 0 || *out < -1 || (have >= 0 && from + *out > have))
        return fl_fail(FL_ESHAPE,
                       "%s: %lld elements from %lld on are not within dim %d "
                       "of X, which has %lld",
                       fl_meta_type(x), (long long)*out, (long long)from, i,
                       (long long)have);
    return FL_OK;
}

static fl_err infer_crop(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0), *like = fl_meta_in(x, "Y", 0);
    const fl_attr *shape = fl_meta_attr(x, "shape");
    const fl_attr *offsets = fl_meta_attr(x, "offsets");
    const int64_t *dim = like ? like->shape.dim : shape->longs;
    const int rank = like ? like->shape.rank : shape->n;
    fl_shape s = {.rank = in->shape.rank};
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (rank != s.rank || (offsets->n && offsets->n != s.rank))
        return fl_fail(FL_ESHAPE,
                       "%s: X has %d dims, the shape %d, there are %d offsets",
                       fl_meta_type(x), s.rank, rank, offsets->n);
    for (int i = 0; i < rank; i++)
        FL_TRY(crop_dim(x, i, offsets->n ? offsets->longs[i] : 0, dim[i],
                        &s.dim[i]));
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    return FL_OK;
}

const fl_op_def fl_op_pad = {
    .type = "pad",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"paddings", FL_ATTR_INTS, .required = true},
             {"pad_value", FL_ATTR_FLOAT}},
    .infer = infer_pad,
    .run = pad,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = pad_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

const fl_op_def fl_op_pad_constant_like = {
    .type = "pad_constant_like",
    .in = {{"X", FL_NOGRAD}, {"Y"}},
    .out = {{"Out"}},
    .attr = {{"pad_value", FL_ATTR_FLOAT}},
    .infer = infer_pad_like,
    .run = pad_like,
    .grad_in = {"Y", "Out@GRAD"},
    .grad_run = pad_like_grad,
    .grad_infer = infer_pad_like_grad,
};

const fl_op_def fl_op_crop = {
    .type = "crop",
    .in = {{"X"}, {"Y", FL_OPTIONAL | FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"offsets", FL_ATTR_INTS}, {"shape", FL_ATTR_INTS}},
    .infer = infer_crop,
    .run = crop,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = crop_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
