/* SPDX-License-Identifier: Apache-2.0 */
/* region.c - memory that several values use in turn.
 *
 * The tensor of every user refers to the region's buffer at all times, also
 * while another one uses it, so that a run that resizes nothing finds each
 * tensor in its place. When the buffer grows, all tensors are set to the new
 * one. */
#include "tensor/value.h"

void fl_region_add(fl_region *r, fl_value *v)
{
    v->region = r;
    fl_push(&r->users, v);
}

static void move_user(fl_tensor *t, fl_buf *to)
{
    fl_buf *old = t->buf;
    t->data = to ? fl_buf_data(to) : NULL;
    if (old == to)
        return;
    t->buf = to ? fl_buf_ref(to) : NULL;
    fl_buf_unref(old);
}

static void move_users(fl_region *r, const fl_buf *from)
{
    for (int64_t i = 0; i < r->users.n; i++)
        if (r->users.at[i]->tensor.buf == from)
            move_user(&r->users.at[i]->tensor, r->buf);
}

/* The old memory is released first: its content is not needed, and there may
 * not be enough memory for both. */
static fl_err grow_region(fl_region *r, size_t bytes)
{
    fl_buf *old = r->buf;
    const size_t spare = old ? bytes / 4 : 0; /* as make_room in tensor.c */
    r->buf = NULL;
    if (old)
        move_users(r, old);
    fl_buf_unref(old);
    FL_TRY(fl_buf_new(bytes + spare, &r->buf));
    move_users(r, NULL);
    return FL_OK;
}

fl_err fl_region_resize(fl_value *v, fl_dtype dtype, const fl_shape *shape)
{
    fl_region *r = v->region;
    fl_tensor *t = &v->tensor;
    const fl_shape s = *shape; /* it may be the shape of t */
    size_t bytes;
    FL_TRY(fl_shape_bytes(&s, dtype, &bytes));
    if (!r->buf || fl_buf_size(r->buf) < bytes)
        FL_TRY(grow_region(r, bytes));
    move_user(t, r->buf);
    t->dtype = dtype;
    t->shape = s;
    t->lod.levels = 0; /* keep its memory for the next LoD */
    return FL_OK;
}

void fl_region_fini(fl_region *r)
{
    fl_buf_unref(r->buf);
    fl_vec_fini(&r->users);
}
