/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - columns over the memory of tensors. */
#include "data/batch.h"

#include "base/mem.h"
#include "data/wide.h"

#include <string.h>

void fl_batch_init(fl_batch *b, const fl_schema *s)
{
    *b = (fl_batch){.schema = s, .wide = fl_wide()};
    b->column = fl_mem_alloc((size_t)s->n_columns * sizeof *b->column);
}

void fl_batch_fini(fl_batch *b)
{
    fl_mem_free(b->column);
    *b = (fl_batch){0};
}

static const fl_schema_slot *slot_of(const fl_batch *b, int column)
{
    return &b->schema->slot[b->schema->slot_of[column]];
}

/* Make the buffer exclusive to us and at least so many bytes large. */
static fl_err own_buffer(fl_buf **buf, size_t bytes)
{
    fl_buf *b;
    if (*buf && !fl_buf_shared(*buf) && fl_buf_size(*buf) >= bytes)
        return FL_OK;
    FL_TRY(fl_buf_new(bytes, &b));
    fl_buf_unref(*buf);
    *buf = b;
    return FL_OK;
}

static fl_err begin_column(fl_batch *b, int column, fl_tensor *t, int64_t room)
{
    const fl_schema_slot *s = slot_of(b, column);
    const size_t size = fl_dtype_size(s->dtype);
    const int64_t values = s->width ? s->width * room : room;
    fl_column *c = &b->column[column];
    FL_TRY(own_buffer(&t->buf, (size_t)values * size));
    *c = (fl_column){.data = fl_buf_data(t->buf), .tensor = t};
    c->cap = (int64_t)(fl_buf_size(t->buf) / size);
    t->dtype = s->dtype;
    t->data = c->data;
    t->lod.levels = 0;
    if (!s->width) {
        FL_TRY(own_buffer(&t->lod.buf, (size_t)(room + 1) * sizeof *c->off));
        c->off = fl_buf_data(t->lod.buf);
        c->off[0] = 0;
    }
    return FL_OK;
}

fl_err fl_batch_begin(fl_batch *b, fl_tensor *tensors, int64_t room)
{
    b->rows = 0;
    b->room = room;
    for (int i = 0; i < b->schema->n_columns; i++)
        FL_TRY(begin_column(b, i, &tensors[i], room));
    return FL_OK;
}

fl_err fl_column_grow(fl_batch *b, int column, int64_t more)
{
    fl_buf *buf;
    fl_column *c = &b->column[column];
    const size_t size = fl_dtype_size(slot_of(b, column)->dtype);
    const int64_t need = c->n + more;
    if (need <= c->cap)
        return FL_OK;
    const int64_t cap = need > 2 * c->cap ? need : 2 * c->cap;
    FL_TRY(fl_buf_new((size_t)cap * size, &buf));
    memcpy(fl_buf_data(buf), c->data, (size_t)c->n * size);
    fl_buf_unref(c->tensor->buf);
    c->tensor->buf = buf;
    c->tensor->data = c->data = fl_buf_data(buf);
    c->cap = cap;
    return FL_OK;
}

void fl_batch_keep_row(fl_batch *b)
{
    b->rows++;
    for (int i = 0; i < b->schema->n_columns; i++)
        if (b->column[i].off)
            b->column[i].off[b->rows] = b->column[i].n;
}

void fl_batch_drop_row(fl_batch *b)
{
    for (int i = 0; i < b->schema->n_columns; i++) {
        fl_column *c = &b->column[i];
        c->n = c->off ? c->off[b->rows] : b->rows * slot_of(b, i)->width;
    }
}

void fl_batch_end(fl_batch *b)
{
    for (int i = 0; i < b->schema->n_columns; i++) {
        const fl_column *c = &b->column[i];
        fl_tensor *t = c->tensor;
        t->shape = slot_of(b, i)->shape;
        t->shape.dim[0] = c->off ? c->n : b->rows;
        if (!c->off)
            continue;
        t->lod.levels = 1;
        t->lod.n[0] = b->rows + 1;
        t->lod.off[0] = c->off;
    }
}
