/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - a dtype, a shape and a share of counted memory.
 *
 * Easy to get wrong: dst and src of a copy may share memory, or src may be a
 * view into dst; new memory is allocated before old memory is released. */
#include "tensor/tensor.h"

#include <string.h>

fl_tensor fl_tensor_view(fl_dtype dtype, const fl_shape *shape,
                         const void *data)
{
    return (fl_tensor){.dtype = dtype, .shape = *shape, .data = (void *)data};
}

void fl_tensor_fini(fl_tensor *t)
{
    fl_buf_unref(t->buf);
    fl_lod_fini(&t->lod);
    *t = (fl_tensor){0};
}

int64_t fl_tensor_numel(const fl_tensor *t)
{
    return t->data ? fl_shape_numel(&t->shape) : 0;
}

size_t fl_tensor_bytes(const fl_tensor *t)
{
    return (size_t)fl_tensor_numel(t) * fl_dtype_size(t->dtype);
}

/* A tensor that outgrows its memory will probably outgrow it again (a batch
 * with more ids than any batch before), so it gets a quarter more than it
 * needs. */
static fl_err make_room(fl_tensor *t, size_t bytes)
{
    fl_buf *b;
    bool own = t->buf && !fl_buf_shared(t->buf);
    if (own && fl_buf_size(t->buf) >= bytes) {
        t->data = fl_buf_data(t->buf); /* it may have been a view */
        return FL_OK;
    }
    FL_TRY(fl_buf_new(own && t->data ? bytes + bytes / 4 : bytes, &b));
    fl_buf_unref(t->buf);
    t->buf = b;
    t->data = fl_buf_data(b);
    return FL_OK;
}

fl_err fl_tensor_resize(fl_tensor *t, fl_dtype dtype, const fl_shape *shape)
{
    size_t bytes;
    fl_shape s = *shape; /* it may be the shape of t */
    FL_TRY(fl_shape_bytes(&s, dtype, &bytes));
    FL_TRY(make_room(t, bytes));
    t->dtype = dtype;
    t->shape = s;
    t->lod.levels = 0; /* keep its memory for the next LoD */
    return FL_OK;
}

fl_err fl_tensor_copy(fl_tensor *dst, const fl_tensor *src)
{
    if (dst == src)
        return fl_tensor_unique(dst);
    if (!src->data)
        return fl_tensor_ref(dst, src);
    FL_TRY(fl_tensor_resize(dst, src->dtype, &src->shape));
    memmove(dst->data, src->data, fl_tensor_bytes(src));
    return fl_lod_copy(&dst->lod, &src->lod);
}

fl_err fl_tensor_ref(fl_tensor *dst, const fl_tensor *src)
{
    if (src->data && !src->buf)
        return fl_tensor_copy(dst, src);
    if (dst == src)
        return FL_OK;
    FL_TRY(fl_lod_ref(&dst->lod, &src->lod));
    fl_buf *old = dst->buf;
    dst->buf = src->buf ? fl_buf_ref(src->buf) : NULL;
    dst->data = src->data;
    dst->dtype = src->dtype;
    dst->shape = src->shape;
    fl_buf_unref(old);
    return FL_OK;
}

fl_err fl_tensor_unique(fl_tensor *t)
{
    fl_buf *b;
    FL_TRY(fl_lod_copy(&t->lod, &t->lod));
    if (!t->data || (t->buf && !fl_buf_shared(t->buf)))
        return FL_OK;
    size_t bytes = fl_tensor_bytes(t);
    FL_TRY(fl_buf_new(bytes, &b));
    memcpy(fl_buf_data(b), t->data, bytes);
    fl_buf_unref(t->buf);
    t->buf = b;
    t->data = fl_buf_data(b);
    return FL_OK;
}

fl_err fl_tensor_reshape(fl_tensor *t, const fl_shape *shape)
{
    char have[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    if (fl_shape_numel(shape) != fl_shape_numel(&t->shape))
        return fl_fail(FL_ESHAPE, "tensor: %s has %lld elements, %s has %lld",
                       fl_shape_text(&t->shape, have),
                       (long long)fl_shape_numel(&t->shape),
                       fl_shape_text(shape, want),
                       (long long)fl_shape_numel(shape));
    t->shape = *shape;
    return FL_OK;
}
