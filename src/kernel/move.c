/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - boxes of elements, axes, and the shape that XShape carries. */
#include "kernel/move.h"

#include <string.h>

void fl_box_dim(fl_box *b, int64_t dim, int64_t to, int64_t from)
{
    if (dim == 1)
        return;
    int last = b->rank - 1;
    if (last >= 0 && b->to[last] == dim * to && b->from[last] == dim * from) {
        b->dim[last] *= dim;
        b->to[last] = to;
        b->from[last] = from;
        return;
    }
    b->dim[b->rank] = dim;
    b->to[b->rank] = to;
    b->from[b->rank] = from;
    b->rank++;
}

bool fl_box_next(fl_box *b)
{
    for (int d = b->rank - 2; d >= 0; d--) {
        b->to_at += b->to[d];
        b->from_at += b->from[d];
        if (++b->at[d] < b->dim[d])
            return true;
        b->to_at -= b->at[d] * b->to[d];
        b->from_at -= b->at[d] * b->from[d];
        b->at[d] = 0;
    }
    return false;
}

static void copy_run(size_t size, int64_t n, char *to, int64_t to_step,
                     const char *from, int64_t from_step)
{
    int64_t s = (int64_t)size;
    switch (size) { /* with a constant size the compiler makes one move
                       instruction */
    case 8:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step * 8, from + i * from_step * 8, 8);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step * 4, from + i * from_step * 4, 4);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step * s, from + i * from_step * s, size);
    }
}

void fl_box_copy(fl_box *b, size_t size, void *to, const void *from)
{
    for (int d = 0; d < b->rank; d++)
        if (!b->dim[d])
            return;
    int last = b->rank - 1;
    int64_t n = last < 0 ? 1 : b->dim[last];
    int64_t to_step = last < 0 ? 1 : b->to[last];
    int64_t from_step = last < 0 ? 1 : b->from[last];
    do {
        char *t = (char *)to + b->to_at * (int64_t)size;
        const char *f = (const char *)from + b->from_at * (int64_t)size;
        if (to_step == 1 && from_step == 1)
            memcpy(t, f, (size_t)n * size);
        else
            copy_run(size, n, t, to_step, f, from_step);
    } while (fl_box_next(b));
}

void fl_box_steps(const fl_shape *s, int64_t step[FL_MAX_RANK])
{
    int64_t n = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= s->dim[i];
    }
}

void fl_move_runs(int64_t n, size_t bytes, char *to, size_t to_step,
                  const char *from, size_t from_step)
{
    if (bytes)
        for (int64_t i = 0; i < n; i++, to += to_step, from += from_step)
            memcpy(to, from, bytes);
}

fl_err fl_move_list(const fl_infer *x, const char *slot)
{
    for (int i = 0; i < fl_meta_count_in(x, slot); i++)
        if (!fl_meta_in(x, slot, i))
            return fl_fail(FL_EINVAL, "%s: %s %d is missing", fl_meta_type(x),
                           slot, i);
    return FL_OK;
}

fl_err fl_move_axis(const fl_infer *x, const char *slot, int64_t axis, int rank,
                    int *out)
{
    char text[FL_SHAPE_TEXT];
    if (axis < -rank || axis >= rank)
        return fl_fail(FL_ESHAPE, "%s: axis %lld is not an axis of %s %s",
                       fl_meta_type(x), (long long)axis, slot,
                       fl_shape_text(&fl_meta_in(x, slot, 0)->shape, text));
    *out = (int)(axis < 0 ? axis + rank : axis);
    return FL_OK;
}

fl_err fl_infer_xshape(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    char text[FL_SHAPE_TEXT];
    if (in->shape.rank >= FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: X %s has %d dimensions, at most %d fit",
                       fl_meta_type(x), fl_shape_text(&in->shape, text),
                       in->shape.rank, FL_MAX_RANK - 1);
    fl_shape s = {.rank = in->shape.rank + 1};
    for (int i = 0; i < in->shape.rank; i++)
        s.dim[i + 1] = in->shape.dim[i];
    fl_meta_set(x, "XShape", 0, in->dtype, &s);
    fl_meta_share_lod(x, "X", "XShape");
    return FL_OK;
}

fl_err fl_infer_xshape_grad(fl_infer *x)
{
    const fl_meta *of = fl_meta_in(x, "XShape", 0);
    const fl_meta *dy = fl_meta_in(x, "Out@GRAD", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_ANY));
    if (of->shape.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: XShape is %s, expected [0, ..]",
                       fl_meta_type(x), fl_shape_text(&of->shape, text));
    fl_shape s = fl_shape_of(of->shape.rank - 1, of->shape.dim + 1);
    fl_meta_set(x, "X@GRAD", 0, dy->dtype, &s);
    fl_meta_share_lod(x, "XShape", "X@GRAD");
    return FL_OK;
}

int64_t fl_move_index_at(const fl_tensor *t, int64_t i)
{
    return t->dtype == FL_I32 ? ((const int32_t *)t->data)[i]
                              : ((const int64_t *)t->data)[i];
}

fl_err fl_move_check_one(const fl_infer *x, const char *slot)
{
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, slot, FL_INDEXES));
    FL_TRY(fl_move_list(x, slot));
    for (int i = 0; i < fl_meta_count_in(x, slot); i++) {
        const fl_shape *s = &fl_meta_in(x, slot, i)->shape;
        const int64_t n = fl_shape_numel(s);
        if (n >= 0 && n != 1)
            return fl_fail(FL_ESHAPE, "%s: %s %d is %s, expected one element",
                           fl_meta_type(x), slot, i, fl_shape_text(s, text));
    }
    return FL_OK;
}

fl_err fl_move_numbers(const fl_call *c, const char *whole, const char *parts,
                       int *n, int64_t out[FL_MAX_RANK])
{
    const int many = fl_in_count(c, parts);
    const int64_t all = many ? many : fl_numel(c, whole);
    if (all > FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: %s has %lld numbers, at most %d fit",
                       c->def->type, many ? parts : whole, (long long)all,
                       FL_MAX_RANK);
    *n = (int)all;
    for (int i = 0; i < *n; i++)
        out[i] = many ? fl_move_index_at(fl_in_at(c, parts, i), 0)
                      : fl_move_index_at(fl_in(c, whole), i);
    return FL_OK;
}

fl_err fl_move_shape(const fl_infer *x, const char *attr, int64_t least,
                     fl_shape *out)
{
    const fl_attr *list = fl_meta_attr(x, attr);
    char text[FL_SHAPE_TEXT];
    if (list->n > FL_MAX_RANK)
        return fl_fail(FL_EINVAL, "%s: %s has %d dimensions, at most %d fit",
                       fl_meta_type(x), attr, list->n, FL_MAX_RANK);
    *out = fl_shape_of(list->n, list->longs);
    for (int i = 0; i < out->rank; i++)
        if (out->dim[i] < least)
            return fl_fail(FL_EINVAL, "%s: %s %s has a dimension below %lld",
                           fl_meta_type(x), attr, fl_shape_text(out, text),
                           (long long)least);
    return FL_OK;
}

static bool counts_rows(const fl_infer *x)
{
    return fl_op_attr(x->def, "by_rows") >= 0 && fl_meta_attr(x, "by_rows")->b;
}

/* Dimension `at` of Input, or its number of sequences. */
static int64_t batch_of(const fl_infer *x, int at)
{
    const fl_meta *in = fl_meta_in(x, "Input", 0);
    if (at || !in->lod_level || counts_rows(x))
        return in->shape.dim[at];
    return in->lod ? in->lod->n[in->lod_level - 1] - 1 : -1;
}

fl_err fl_move_batch_shape(const fl_infer *x, fl_shape *out)
{
    const fl_shape *in = &fl_meta_in(x, "Input", 0)->shape;
    const int64_t from = fl_meta_attr(x, "input_dim_idx")->i;
    const int64_t to = fl_meta_attr(x, "output_dim_idx")->i;
    FL_TRY(fl_meta_check(x, "Input", FL_ANY));
    FL_TRY(fl_move_shape(x, "shape", -1, out));
    if (from < 0 || from >= in->rank)
        return fl_fail(FL_ESHAPE,
                       "%s: input_dim_idx is %lld, Input has %d dims",
                       fl_meta_type(x), (long long)from, in->rank);
    if (to < 0 || to >= out->rank)
        return fl_fail(FL_ESHAPE,
                       "%s: output_dim_idx is %lld, shape has %d dims",
                       fl_meta_type(x), (long long)to, out->rank);
    out->dim[to] = batch_of(x, (int)from);
    return FL_OK;
}

fl_err fl_move_dtype(const fl_infer *x, const char *attr, fl_dtype *out)
{
    int64_t number = fl_meta_attr(x, attr)->i;
    if (!fl_dtype_valid((int)number))
        return fl_fail(FL_EINVAL,
                       "%s: %s is %lld, which is not an element type",
                       fl_meta_type(x), attr, (long long)number);
    *out = (fl_dtype)number;
    return FL_OK;
}
