/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - rows of a large table by id.
 *
 * Easy to get wrong: a row is rarely aligned to a cache line, so both of its
 * ends are prefetched. Widths that click models use are compiled as constants:
 * a row of ten floats is then two moves and not a loop. */
#define FL_SELF "kernel/embed.c"
#include "kernel/embed.h"

#include "kernel/move.h"
#include "op/real.h"

#include <string.h>
#ifdef REAL

#define INLINE static inline __attribute__((always_inline))

INLINE void FN(ask)(const fl_embed *e, int64_t i, int64_t width,
                    const REAL *table, int write)
{
    const REAL *row = table + e->ids[i] * width;
    if (write) {
        __builtin_prefetch(row, 1);
        __builtin_prefetch(row + width - 1, 1);
    } else {
        __builtin_prefetch(row);
        __builtin_prefetch(row + width - 1);
    }
}

INLINE void FN(add)(int64_t width, REAL scale, const REAL *restrict from,
                    REAL *restrict to)
{
    for (int64_t j = 0; j < width; j++)
        to[j] += scale * from[j];
}

/* The first row of a group is copied, the other rows are added to it. */
INLINE void FN(get)(const fl_embed *e, int64_t width, const REAL *table,
                    REAL *out)
{
    size_t bytes = (size_t)width * sizeof *out;
    for (int64_t r = 0; r < e->rows; r++, out += e->step) {
        int64_t i = e->off ? e->off[r] : r,
                end = e->off ? e->off[r + 1] : r + 1;
        bool empty = true;
        for (; i < end; i++) {
            if (i + FL_EMBED_AHEAD < e->n)
                FN(ask)(e, i + FL_EMBED_AHEAD, width, table, 0);
            if (e->ids[i] == e->padding)
                continue;
            const REAL *row = table + e->ids[i] * width;
            if (empty)
                memcpy(out, row, bytes);
            else
                FN(add)(width, 1, row, out);
            empty = false;
        }
        if (empty)
            memset(out, 0, bytes);
    }
}

INLINE void FN(put)(const fl_embed *e, int64_t width, REAL scale, const REAL *g,
                    REAL *table)
{
    for (int64_t r = 0; r < e->rows; r++, g += e->step) {
        int64_t i = e->off ? e->off[r] : r,
                end = e->off ? e->off[r + 1] : r + 1;
        for (; i < end; i++) {
            if (i + FL_EMBED_AHEAD < e->n)
                FN(ask)(e, i + FL_EMBED_AHEAD, width, table, 1);
            if (e->ids[i] != e->padding)
                FN(add)(width, scale, g, table + e->ids[i] * width);
        }
    }
}

FL_CLONES void FN(fl_embed_get)(const fl_embed *e, const REAL *table, REAL *out)
{
    switch (e->width) {
    case 8:
        FN(get)(e, 8, table, out);
        break;
    case 10:
        FN(get)(e, 10, table, out);
        break;
    case 16:
        FN(get)(e, 16, table, out);
        break;
    default:
        FN(get)(e, e->width, table, out);
    }
}

FL_CLONES void FN(fl_embed_add)(const fl_embed *e, REAL scale, const REAL *g,
                                REAL *table)
{
    switch (e->width) {
    case 8:
        FN(put)(e, 8, scale, g, table);
        break;
    case 10:
        FN(put)(e, 10, scale, g, table);
        break;
    case 16:
        FN(put)(e, 16, scale, g, table);
        break;
    default:
        FN(put)(e, e->width, scale, g, table);
    }
}

#undef INLINE

#else

fl_embed fl_embed_of(const fl_tensor *ids, bool pool, int64_t width,
                     int64_t step, int64_t padding)
{
    const fl_lod *lod = &ids->lod;
    fl_embed e = {.ids = ids->data,
                  .n = fl_tensor_numel(ids),
                  .width = width,
                  .step = step,
                  .padding = padding};
    e.off = pool ? lod->off[lod->levels - 1] : NULL;
    e.rows = pool ? lod->n[lod->levels - 1] - 1 : e.n;
    return e;
}

FL_CLONES static bool all_within(int64_t n, const int64_t *ids, int64_t height)
{
    uint64_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint64_t)ids[i] >= (uint64_t)height;
    return !outside;
}

fl_err fl_embed_check(const char *type, const fl_embed *e, int64_t height)
{
    if (all_within(e->n, e->ids, height)) /* vector code: the usual case */
        return FL_OK;
    for (int64_t i = 0; i < e->n; i++)
        if (e->ids[i] < 0 || e->ids[i] >= height)
            return fl_fail(FL_EINVAL,
                           "%s: id %lld is outside the table of %lld rows",
                           type, (long long)e->ids[i], (long long)height);
    return FL_OK;
}

void fl_embed_warm(const fl_embed *e, const void *table, size_t size)
{
    size_t bytes = (size_t)e->width * size;
    for (int64_t i = 0; i < e->n && i < FL_EMBED_AHEAD; i++) {
        const char *row = (const char *)table + (size_t)e->ids[i] * bytes;
        __builtin_prefetch(row);
        __builtin_prefetch(row + bytes - 1);
    }
}

/* --- many slots side by side --- */

static int64_t rows_of(const fl_meta *ids, bool pool)
{
    if (!pool)
        return ids->shape.dim[0];
    return ids->lod && ids->lod_level ? ids->lod->n[ids->lod_level - 1] - 1
                                      : -1;
}

static fl_err check_ids(const fl_infer *x, int i, bool pool)
{
    const fl_meta *m = fl_meta_in(x, "Ids", i);
    char text[FL_SHAPE_TEXT];
    if (m->shape.rank != 2 || m->shape.dim[1] != 1)
        return fl_fail(FL_ESHAPE, "%s: Ids %d is %s, expected [n,1]",
                       fl_meta_type(x), i, fl_shape_text(&m->shape, text));
    if (pool && fl_meta_running(x) && !m->lod_level)
        return fl_fail(FL_ESHAPE, "%s: Ids %d has no sequences to sum up",
                       fl_meta_type(x), i);
    if (pool && fl_meta_running(x))
        return fl_lod_check(m->lod, m->shape.dim[0]);
    return FL_OK;
}

static fl_err check_dense(const fl_infer *x, int i)
{
    const fl_meta *m = fl_meta_in(x, "Dense", i);
    char text[FL_SHAPE_TEXT];
    if (m->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: Dense %d is %s, expected [n,w]",
                       fl_meta_type(x), i, fl_shape_text(&m->shape, text));
    return FL_OK;
}

/* Add the input that order[k] names to the shape of the concat. */
static fl_err add_part(const fl_infer *x, const fl_meta *w, int64_t k,
                       fl_shape *out)
{
    bool pool = fl_meta_attr(x, "pool")->b;
    const char *slot = k >= 0 ? "Ids" : "Dense";
    int i = (int)(k >= 0 ? k : -(k + 1));
    const fl_meta *m = fl_meta_in(x, slot, i);
    if (!m)
        return fl_fail(FL_EINVAL, "%s: order names %s %d, there are %d",
                       fl_meta_type(x), slot, i, fl_meta_count_in(x, slot));
    FL_TRY(k >= 0 ? check_ids(x, i, pool) : check_dense(x, i));
    int64_t rows = k >= 0 ? rows_of(m, pool) : m->shape.dim[0];
    if (out->dim[0] >= 0 && rows >= 0 && rows != out->dim[0])
        return fl_fail(FL_ESHAPE, "%s: %s %d has %lld rows, others have %lld",
                       fl_meta_type(x), slot, i, (long long)rows,
                       (long long)out->dim[0]);
    if (rows >= 0)
        out->dim[0] = rows;
    out->dim[1] =
        fl_dim_add(out->dim[1], k >= 0 ? w->shape.dim[1] : m->shape.dim[1]);
    return FL_OK;
}

fl_err fl_embed_infer(const fl_infer *x, const char *table, fl_shape *out)
{
    const fl_meta *w = fl_meta_in(x, table, 0);
    const fl_attr *order = fl_meta_attr(x, "order");
    int n = fl_meta_count_in(x, "Ids") + fl_meta_count_in(x, "Dense");
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_move_list(x, "Ids"));
    FL_TRY(fl_move_list(x, "Dense"));
    FL_TRY(fl_meta_check(x, table, FL_REALS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    FL_TRY(fl_meta_check(x, "Dense", FL_SET(w->dtype)));
    if (w->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: %s is %s, expected [v,d]",
                       fl_meta_type(x), table, fl_shape_text(&w->shape, text));
    if (order->n != n)
        return fl_fail(FL_EINVAL, "%s: order has %d numbers for %d inputs",
                       fl_meta_type(x), order->n, n);
    *out = (fl_shape){2, {-1, 0}};
    for (int i = 0; i < n; i++)
        FL_TRY(add_part(x, w, order->longs[i], out));
    return FL_OK;
}

fl_err fl_embed_infer_concat(fl_infer *x)
{
    const fl_attr *order = fl_meta_attr(x, "order");
    fl_meta *out = fl_meta_out(x, "Out", 0);
    fl_shape s;
    FL_TRY(fl_embed_infer(x, "W", &s));
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "W", 0)->dtype, &s);
    if (!out || !order->n)
        return FL_OK;
    int64_t first = order->longs[0];
    const fl_meta *like = first >= 0
                              ? fl_meta_in(x, "Ids", (int)first)
                              : fl_meta_in(x, "Dense", (int)-(first + 1));
    bool pooled = first >= 0 && fl_meta_attr(x, "pool")->b;
    out->lod_level = like->lod_level - (pooled && like->lod_level);
    out->lod = pooled ? NULL : like->lod;
    return FL_OK;
}

fl_err fl_embed_cut_lod(fl_call *c)
{
    const fl_attr *order = fl_attr_get(c, "order");
    if (!order->n || order->longs[0] < 0 || !fl_attr_bool(c, "pool"))
        return FL_OK;
    fl_lod upper = fl_in_at(c, "Ids", (int)order->longs[0])->lod;
    upper.levels--;
    return fl_lod_ref(&fl_out(c, "Out")->lod, &upper);
}

fl_embed_where fl_embed_where_of(const fl_tensor *t)
{
    const int64_t *x = t->data, n = fl_tensor_numel(t) / 2;
    return (fl_embed_where){.n = n, .m = x[0], .at = x + 1, .id = x + 1 + n};
}

static int64_t count_before(const fl_call *c, int k)
{
    int64_t n = 0;
    for (int i = 0; i < k; i++)
        n += fl_tensor_numel(fl_in_at(c, "Ids", i));
    return n;
}

int64_t fl_embed_count_ids(const fl_call *c)
{
    return count_before(c, fl_in_count(c, "Ids"));
}

bool fl_embed_next(fl_embed_walk *w, fl_embed_part *part)
{
    const fl_attr *order = fl_attr_get(w->c, "order");
    if (w->i == order->n)
        return false;
    int64_t k = order->longs[w->reverse ? order->n - 1 - w->i : w->i];
    *part = (fl_embed_part){0};
    w->i++;
    if (k >= 0) {
        part->width = fl_in(w->c, w->table)->shape.dim[1];
        part->first = count_before(w->c, (int)k);
        part->ids = fl_embed_of(fl_in_at(w->c, "Ids", (int)k),
                                fl_attr_bool(w->c, "pool"), part->width,
                                w->step, fl_attr_i64(w->c, "padding_idx"));
    } else {
        part->dense = fl_in_at(w->c, "Dense", (int)-(k + 1));
        part->width = part->dense->shape.dim[1];
    }
    part->column = w->reverse ? w->step - w->columns - part->width : w->columns;
    w->columns += part->width;
    return true;
}

fl_err fl_embed_check_all(const fl_call *c, const char *table)
{
    const fl_shape *w = &fl_in(c, table)->shape;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        fl_embed e = fl_embed_of(fl_in_at(c, "Ids", i), false, 0, 0, -1);
        FL_TRY(fl_embed_check("lookup_table", &e, w->dim[0]));
    }
    return FL_OK;
}

#endif
