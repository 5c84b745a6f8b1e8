/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - slices, concatenation and ordered sums of tensors. */
#include "exec/join.h"

#include "op/lanes.h"

#include <string.h>

/* --- slices --- */

int64_t fl_tensor_slices(const fl_tensor *t)
{
    if (!t->data || !t->shape.rank || fl_shape_numel(&t->shape) < 1)
        return 1;
    if (!t->lod.levels)
        return t->shape.dim[0];
    if (fl_lod_check(&t->lod, t->shape.dim[0]) || t->lod.n[0] < 2)
        return 1;
    return t->lod.n[0] - 1;
}

fl_err fl_tensor_slice(fl_tensor *dst, const fl_tensor *src, int i, int n)
{
    const int64_t all = fl_tensor_slices(src), width = all / n;
    int64_t from = i * width, to = i + 1 < n ? from + width : all;
    FL_TRY(fl_lod_slice(&dst->lod, &src->lod, &from, &to));
    const size_t row = (size_t)fl_shape_span(&src->shape, 1, src->shape.rank) *
                       fl_dtype_size(src->dtype);
    dst->dtype = src->dtype;
    dst->shape = src->shape;
    dst->shape.dim[0] = to - from;
    dst->data = (char *)src->data + (size_t)from * row;
    return FL_OK;
}

/* --- joining --- */

/* Whether the rows of two tensors have the same type and shape. */
static bool same_rows(const fl_tensor *a, const fl_tensor *b)
{
    fl_shape s = b->shape;
    if (s.rank)
        s.dim[0] = a->shape.dim[0];
    return a->dtype == b->dtype && fl_shape_equal(&a->shape, &s);
}

static fl_err misfit(const fl_tensor *a, const fl_tensor *b)
{
    char x[FL_SHAPE_TEXT], y[FL_SHAPE_TEXT];
    return fl_fail(
        FL_ESHAPE,
        "the values of places differ: %s%s cannot be joined with %s%s",
        fl_dtype_word(b->dtype), fl_shape_text(&b->shape, y),
        fl_dtype_word(a->dtype), fl_shape_text(&a->shape, x));
}

static fl_err join_all(fl_tensor *dst, int n, const fl_tensor *const *src)
{
    fl_shape s = src[0]->shape;
    s.rank = s.rank ? s.rank : 1; /* a scalar counts as a row */
    s.dim[0] = 0;
    for (int i = 0; i < n; i++) {
        if (!same_rows(src[0], src[i]))
            return misfit(src[0], src[i]);
        s.dim[0] += src[i]->shape.rank ? src[i]->shape.dim[0] : 1;
    }
    FL_TRY(fl_tensor_resize(dst, src[0]->dtype, &s));
    FL_TRY(fl_lod_join(&dst->lod, n, src));
    char *at = dst->data;
    for (int i = 0; i < n; i++) {
        const size_t bytes = fl_tensor_bytes(src[i]);
        if (bytes)
            memcpy(at, src[i]->data, bytes);
        at += bytes;
    }
    return FL_OK;
}

fl_err fl_tensors_join(fl_tensor *dst, int n, const fl_tensor **src)
{
    int some = 0;
    for (int i = 0; i < n; i++)
        if (src[i]->data)
            src[some++] = src[i];
    if (some)
        return join_all(dst, some, src);
    fl_tensor_fini(dst);
    return FL_OK;
}

/* --- sums --- */

static bool is_empty(const fl_value *v)
{
    return !v->kind || (v->kind == FL_LOD_TENSOR && !v->tensor.data);
}

static fl_err add_tensor(fl_tensor *sum, const fl_tensor *x)
{
    const int64_t n = fl_tensor_numel(x);
    if (sum->dtype != x->dtype || !fl_shape_equal(&sum->shape, &x->shape))
        return misfit(sum, x);
    if (x->dtype == FL_F32)
        fl_add_f32(n, x->data, sum->data);
    else if (x->dtype == FL_F64)
        fl_add_f64(n, x->data, sum->data);
    else
        return fl_fail(FL_ESHAPE, "gradients of %s cannot be added",
                       fl_dtype_word(x->dtype));
    return FL_OK;
}

static fl_err sum_tensors(fl_value *dst, int n, fl_value *const *src)
{
    FL_TRY(fl_value_copy(dst, src[0]));
    for (int i = 1; i < n; i++)
        FL_TRY(add_tensor(&dst->tensor, &src[i]->tensor));
    return FL_OK;
}

static void put_rows(const fl_rows *dst, int64_t at, const fl_rows *src)
{
    const size_t bytes = fl_tensor_bytes(&src->value);
    if (!src->n || !bytes)
        return;
    memcpy(fl_rows_index(dst) + at, fl_rows_index(src),
           (size_t)src->n * sizeof(int64_t));
    memcpy((char *)dst->value.data + bytes / (size_t)src->n * (size_t)at,
           src->value.data, bytes);
}

static fl_err list_rows(fl_value *dst, int n, fl_value *const *src)
{
    const fl_rows *first = &src[0]->rows;
    fl_shape s = first->value.shape;
    int64_t all = 0;
    for (int i = 0; i < n; i++) {
        const fl_rows *r = &src[i]->rows;
        if (r->height != first->height || !same_rows(&first->value, &r->value))
            return misfit(&first->value, &r->value);
        all += r->n;
    }
    s.dim[0] = first->height;
    FL_TRY(fl_rows_resize(&dst->rows, first->value.dtype, &s, all));
    dst->kind = FL_SELECTED_ROWS;
    all = 0;
    for (int i = 0; i < n; all += src[i++]->rows.n)
        put_rows(&dst->rows, all, &src[i]->rows);
    return FL_OK;
}

static fl_err sum_rows(fl_value *dst, int n, fl_value *const *src)
{
    if (dst != src[0])
        return list_rows(dst, n, src);
    fl_value apart = {0};
    const fl_err err = list_rows(&apart, n, src);
    fl_value_fini(err ? &apart : dst);
    if (!err)
        *dst = apart;
    return err;
}

fl_err fl_values_sum(fl_value *dst, int n, fl_value **src)
{
    int some = 0;
    for (int i = 0; i < n; i++)
        if (!is_empty(src[i]))
            src[some++] = src[i];
    for (int i = 1; i < some; i++)
        if (src[i]->kind != src[0]->kind)
            return fl_fail(FL_ESHAPE, "one place has a %s and another a %s",
                           fl_kind_name(src[0]->kind),
                           fl_kind_name(src[i]->kind));
    if (!some)
        return FL_OK;
    return src[0]->kind == FL_SELECTED_ROWS ? sum_rows(dst, some, src)
                                            : sum_tensors(dst, some, src);
}
