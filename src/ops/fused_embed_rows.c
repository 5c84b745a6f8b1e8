/* SPDX-License-Identifier: Apache-2.0 */
/* fused_embed_rows: the gradient of a table as selected rows, from the gradient
 * of a concat of (pooled) lookups.
 *
 *     Ids*         i64 [n,1], with sequences where `pool`
 *     W            the table [v,d], for its shape alone
 *     Dense*       the other inputs of the concat, for their widths alone
 *     Grad         gradient of the concat [batch, columns]
 *     Where        may be absent; the different ids (fl_embed_where)
 *     Out          selected rows of [v,d]: one for each id; with Where one for
 *                  each different id, in the order of that list
 *     order, pool  as fused_embed_concat's
 *
 * For each Ids from left to right (`reverse`: from right to left), each row and
 * each of its ids in order, Out has the row Grad[row, columns of the slot];
 * with Where, rows of one id are added up in that order. Equals concat_grad +
 * sequence_pool_grad + lookup_table_grad + sum, to the last bit. */
#define FL_SELF "ops/fused_embed_rows.c"
#include "kernel/embed.h"
#include "op/real.h"

#include <string.h>
#ifdef REAL

/* Sums start from -0, because x + -0 is x for every x. */
static void FN(add_slots)(fl_call *c, const fl_embed_where *where, REAL *sum)
{
    const fl_tensor *g = fl_in(c, "Grad");
    const int64_t width = fl_in(c, "W")->shape.dim[1];
    fl_embed_walk walk = {.c = c,
                          .table = "W",
                          .step = g->shape.dim[1],
                          .reverse = fl_attr_bool(c, "reverse")};
    fl_embed_part part;
    for (int64_t i = 0; i < where->m * width; i++)
        sum[i] = -(REAL)0;
    while (fl_embed_next(&walk, &part)) {
        if (part.dense)
            continue;
        part.ids.ids = where->at + part.first;
        FN(fl_embed_add)
        (&part.ids, 1, (const REAL *)g->data + part.column, sum);
    }
}

#else

static fl_err infer_fused(fl_infer *x)
{
    const fl_meta *w = fl_meta_in(x, "W", 0), *g = fl_meta_in(x, "Grad", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    fl_shape want;
    FL_TRY(fl_embed_infer(x, "W", &want));
    if (g->dtype != w->dtype || !fl_shape_equal(&g->shape, &want))
        return fl_fail(FL_ESHAPE,
                       "fused_embed_rows: Grad is %s%s, expected %s%s",
                       fl_dtype_name(g->dtype), fl_shape_text(&g->shape, s),
                       fl_dtype_name(w->dtype), fl_shape_text(&want, t));
    FL_TRY(fl_meta_check(x, "Where", FL_SET(FL_I64)));
    *out = (fl_meta){FL_SELECTED_ROWS, w->dtype, w->shape, 0, NULL};
    return FL_OK;
}

/* Write the rows of one slot; returns their number. */
static int64_t copy_slot(const fl_embed_part *part, const char *grad,
                         size_t size, int64_t *index, char *value)
{
    const fl_embed *e = &part->ids;
    const size_t bytes = (size_t)e->width * size;
    int64_t n = 0;
    for (int64_t r = 0; r < e->rows; r++) {
        const char *from = grad + (size_t)(r * e->step + part->column) * size;
        const int64_t end = e->off ? e->off[r + 1] : r + 1;
        for (int64_t i = e->off ? e->off[r] : r; i < end; i++, n++) {
            index[n] = e->ids[i];
            memcpy(value + (size_t)n * bytes, from, bytes);
        }
    }
    return n;
}

static fl_err add_up(fl_call *c, const fl_tensor *list)
{
    const fl_tensor *w = fl_in(c, "W");
    const fl_embed_where where = fl_embed_where_of(list);
    fl_rows *out = &fl_out_value(c, "Out", 0)->rows;
    FL_TRY(fl_rows_resize(out, w->dtype, &w->shape, where.m));
    if (where.m)
        memcpy(fl_rows_index(out), where.id, (size_t)where.m * sizeof(int64_t));
    if (w->dtype == FL_F64)
        add_slots_f64(c, &where, out->value.data);
    else
        add_slots_f32(c, &where, out->value.data);
    return FL_OK;
}

static fl_err copy_all(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "W"), *g = fl_in(c, "Grad");
    fl_rows *out = &fl_out_value(c, "Out", 0)->rows;
    fl_embed_walk walk = {.c = c,
                          .table = "W",
                          .step = g->shape.dim[1],
                          .reverse = fl_attr_bool(c, "reverse")};
    fl_embed_part part;
    int64_t at = 0;
    FL_TRY(fl_embed_check_all(c, "W"));
    FL_TRY(fl_rows_resize(out, w->dtype, &w->shape, fl_embed_count_ids(c)));
    const size_t size = fl_dtype_size(w->dtype);
    while (fl_embed_next(&walk, &part))
        if (!part.dense && part.ids.n)
            at += copy_slot(&part, g->data, size, fl_rows_index(out) + at,
                            (char *)out->value.data +
                                (size_t)(at * part.ids.width) * size);
    return FL_OK;
}

static fl_err fused(fl_call *c)
{
    const fl_tensor *where = fl_in_count(c, "Where") ? fl_in(c, "Where") : NULL;
    return where ? add_up(c, where) : copy_all(c);
}

const fl_op_def fl_op_fused_embed_rows = {
    .type = "fused_embed_rows",
    .in = {{"Ids", FL_MANY},
           {"W", FL_UNREAD},
           {"Dense", FL_MANY | FL_OPTIONAL},
           {"Grad"},
           {"Where", FL_OPTIONAL}},
    .out = {{"Out"}},
    .attr =
        {
            FL_EMBED_ATTRS,
            {"reverse", FL_ATTR_BOOL},
        },
    .flags = FL_OP_HIDDEN,
    .infer = infer_fused,
    .run = fused,
};

#endif
