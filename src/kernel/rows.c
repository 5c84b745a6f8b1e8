/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - selected rows of an operator's X on their way to its Out.
 *
 * Out may be X itself or one of its list: rows are then brought together in
 * scratch memory before Out is written. */
#include "kernel/rows.h"

fl_err fl_rows_pair(fl_call *c, const fl_tensor **x, fl_tensor **out)
{
    const fl_value *from = fl_in_value(c, "X", 0);
    fl_value *to = fl_out_value(c, "Out", 0);
    if (from->kind != FL_SELECTED_ROWS) {
        *x = &from->tensor;
        *out = &to->tensor;
        return FL_OK;
    }
    *x = &from->rows.value;
    *out = &to->rows.value;
    if (from == to)
        return FL_OK;
    to->rows.height = from->rows.height;
    to->rows.n = from->rows.n;
    FL_TRY(fl_tensor_copy(&to->rows.index, &from->rows.index));
    return fl_tensor_resize(*out, (*x)->dtype, &(*x)->shape);
}

fl_err fl_rows_pair_merged(fl_call *c, const fl_tensor **x, fl_tensor **out)
{
    fl_value *to = fl_out_value(c, "Out", 0);
    if (fl_in_value(c, "X", 0)->kind != FL_SELECTED_ROWS)
        return fl_rows_pair(c, x, out);
    FL_TRY(fl_rows_join(c, &to->rows));
    *x = *out = &to->rows.value;
    return FL_OK;
}

static const fl_rows *rows_at(const fl_call *c, int i)
{
    const fl_value *v = fl_in_value(c, "X", i);
    return v->kind == FL_SELECTED_ROWS ? &v->rows : NULL;
}

/* The total number of rows, and the first and the last input that has any. */
static int64_t count_rows(const fl_call *c, const fl_rows **first,
                          const fl_rows **last)
{
    int64_t n = 0;
    *first = *last = NULL;
    for (int i = 0; i < fl_in_count(c, "X"); i++) {
        const fl_rows *r = rows_at(c, i);
        if (!r || !r->n)
            continue;
        n += r->n;
        *last = r;
        if (!*first)
            *first = r;
    }
    return n;
}

/* A list of all rows, of the type and row shape of `like`, in scratch memory.
 */
static fl_err chain(fl_call *c, int64_t n, const fl_rows *like, fl_rows *out)
{
    size_t width =
        (size_t)fl_rows_width(like) * fl_dtype_size(like->value.dtype);
    int64_t *index = fl_scratch(c, n, sizeof *index + width);
    if (!index)
        return FL_ENOMEM;
    char *value = (char *)(index + n);
    fl_shape list = {1, {n}}, shape = like->value.shape;
    shape.dim[0] = n;
    *out = (fl_rows){.height = like->height,
                     .n = n,
                     .index = fl_tensor_view(FL_I64, &list, index),
                     .value = fl_tensor_view(like->value.dtype, &shape, value)};
    for (int i = 0; i < fl_in_count(c, "X"); i++) {
        const fl_rows *r = rows_at(c, i);
        if (!r || !r->n)
            continue;
        memcpy(index, fl_rows_index(r), (size_t)r->n * sizeof *index);
        memcpy(value, r->value.data, (size_t)r->n * width);
        index += r->n;
        value += (size_t)r->n * width;
    }
    return FL_OK;
}

fl_err fl_rows_join(fl_call *c, fl_rows *out)
{
    const fl_rows *first, *last;
    fl_rows all;
    int64_t n = count_rows(c, &first, &last);
    if (!n) {
        const fl_rows *any = rows_at(c, 0);
        fl_shape shape = any->value.shape;
        shape.dim[0] = any->height;
        return fl_rows_resize(out, any->value.dtype, &shape, 0);
    }
    if (first == last && first != out)
        return fl_rows_merge(out, first);
    FL_TRY(chain(c, n, first, &all));
    return fl_rows_merge(out, &all);
}

fl_err fl_rows_map_init(fl_rows_map *m, fl_call *c, const fl_rows *r)
{
    fl_row_at *space = fl_scratch(c, r->n, 2 * sizeof *space);
    if (!space)
        return FL_ENOMEM;
    *m = (fl_rows_map){.order = fl_rows_order(r, space), .n = r->n};
    m->low = r->n ? fl_rows_index(r)[m->order[0].at] : 0;
    return FL_OK;
}

int64_t fl_rows_map_find(const fl_rows_map *m, int64_t row)
{
    const uint64_t want = (uint64_t)row - (uint64_t)m->low;
    int64_t from = 0, to = m->n;
    if (row < m->low)
        return -1;
    while (from < to) { /* the first row that is not below it */
        const int64_t middle = from + (to - from) / 2;
        if (m->order[middle].row < want)
            from = middle + 1;
        else
            to = middle;
    }
    return from < m->n && m->order[from].row == want ? m->order[from].at : -1;
}
