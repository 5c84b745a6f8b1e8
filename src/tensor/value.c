/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - what a variable holds: a tensor, selected rows or an array. */
#include "tensor/value.h"

static void shorten(fl_tensors *a, int64_t n)
{
    while (a->n > n)
        fl_tensor_fini(&a->at[--a->n]);
}

void fl_value_fini(fl_value *v)
{
    fl_tensor_fini(&v->tensor);
    fl_tensor_fini(&v->rows.index);
    fl_tensor_fini(&v->rows.value);
    shorten(&v->array, 0);
    fl_vec_fini(&v->array);
    *v = (fl_value){0};
}

bool fl_value_is_empty(const fl_value *v)
{
    return v->kind == FL_SELECTED_ROWS
               ? !v->rows.n
               : v->kind != FL_LOD_TENSOR || !v->tensor.data;
}

fl_err fl_value_slice(fl_value *dst, const fl_value *src, int64_t start,
                      int64_t n)
{
    dst->kind = src->kind;
    if (src->kind == FL_SELECTED_ROWS)
        return fl_rows_slice(&dst->rows, &src->rows, start, n);
    const fl_tensor *x = &src->tensor;
    const size_t row = (size_t)fl_shape_span(&x->shape, 1, x->shape.rank) *
                       fl_dtype_size(x->dtype);
    dst->tensor = *x;
    dst->tensor.lod = (fl_lod){0};
    dst->tensor.shape.dim[0] = n;
    dst->tensor.data = (char *)x->data + (size_t)start * row;
    return FL_OK;
}

void fl_value_set_absent(fl_value *v, fl_dtype dtype, const fl_shape *shape)
{
    fl_value_fini(v);
    v->kind = FL_LOD_TENSOR;
    v->tensor.dtype = dtype;
    v->tensor.shape = *shape;
    v->absent = true;
}

bool fl_value_is_absent(const fl_value *v)
{
    return v->absent && v->kind == FL_LOD_TENSOR && !v->tensor.data;
}

fl_value *fl_value_new(void)
{
    return fl_mem_alloc(sizeof(fl_value));
}

void fl_value_free(fl_value *v)
{
    if (!v)
        return;
    fl_value_fini(v);
    fl_mem_free(v);
}

fl_kind fl_value_kind(const fl_value *v)
{
    return v->kind;
}

/* An empty value takes the kind that is asked for. */
static fl_err become_kind(fl_value *v, fl_kind kind)
{
    if (!v->kind)
        v->kind = kind;
    if (v->kind != kind)
        return fl_fail(FL_EINVAL, "the variable holds a %s, not a %s",
                       fl_kind_name(v->kind), fl_kind_name(kind));
    return FL_OK;
}

fl_err fl_value_tensor(fl_value *v, fl_tensor **out)
{
    FL_TRY(become_kind(v, FL_LOD_TENSOR));
    *out = &v->tensor;
    return FL_OK;
}

fl_err fl_value_rows(fl_value *v, fl_rows **out)
{
    FL_TRY(become_kind(v, FL_SELECTED_ROWS));
    *out = &v->rows;
    return FL_OK;
}

fl_err fl_value_array(fl_value *v, int64_t *n, fl_tensor **out)
{
    FL_TRY(become_kind(v, FL_LOD_TENSOR_ARRAY));
    *n = v->array.n;
    *out = v->array.at;
    return FL_OK;
}

static fl_err copy_rows(fl_rows *dst, const fl_rows *src)
{
    FL_TRY(fl_tensor_copy(&dst->index, &src->index));
    FL_TRY(fl_tensor_copy(&dst->value, &src->value));
    dst->height = src->height;
    dst->n = src->n;
    return FL_OK;
}

static fl_err copy_array(fl_tensors *dst, const fl_tensors *src)
{
    shorten(dst, src->n);
    while (dst->n < src->n)
        fl_push(dst, (fl_tensor){0});
    for (int64_t i = 0; i < src->n; i++)
        FL_TRY(fl_tensor_copy(&dst->at[i], &src->at[i]));
    return FL_OK;
}

fl_err fl_value_copy(fl_value *dst, const fl_value *src)
{
    if (dst == src)
        return FL_OK;
    dst->kind = src->kind;
    dst->absent = src->absent;
    switch (src->kind) {
    case FL_LOD_TENSOR:
        return fl_tensor_copy(&dst->tensor, &src->tensor);
    case FL_SELECTED_ROWS:
        return copy_rows(&dst->rows, &src->rows);
    case FL_LOD_TENSOR_ARRAY:
    case FL_FEED_MINIBATCH:
    case FL_FETCH_LIST:
        return copy_array(&dst->array, &src->array);
    default:
        return FL_OK;
    }
}

const char *fl_kind_name(fl_kind k)
{
    switch (k) {
    case FL_LOD_TENSOR:
        return "lod_tensor";
    case FL_SELECTED_ROWS:
        return "selected_rows";
    case FL_FEED_MINIBATCH:
        return "feed_minibatch";
    case FL_FETCH_LIST:
        return "fetch_list";
    case FL_STEP_SCOPES:
        return "step_scopes";
    case FL_LOD_RANK_TABLE:
        return "lod_rank_table";
    case FL_LOD_TENSOR_ARRAY:
        return "lod_tensor_array";
    case FL_PLACE_LIST:
        return "place_list";
    case FL_READER:
        return "reader";
    case FL_RAW:
        return "raw";
    case FL_TUPLE:
        return "tuple";
    }
    return "?";
}
