/* SPDX-License-Identifier: Apache-2.0 */
/* fused_embed_rows: the gradient of a table as selected rows, from the gradient
 * of a concat of (pooled) lookups.
 *
 *     Ids*         i64 [n,1], with sequences where `pool`
 *     W            the table [v,d], for its shape alone
 *     Dense*       the other inputs of the concat, for their widths alone
 *     Grad         gradient of the concat [batch, columns]
 *     Out          selected rows of [v,d]: one for each id
 *     order, pool  as fused_embed_concat's
 *
 * For each Ids from left to right, each row and each of its ids in order, Out
 * has the row Grad[row, columns of the slot]. Equals concat_grad +
 * sequence_pool_grad + lookup_table_grad + sum, to the last bit. */
#include "kernel/embed.h"

#include <string.h>

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
    *out = (fl_meta){FL_SELECTED_ROWS, w->dtype, w->shape, 0, NULL};
    return FL_OK;
}

static fl_embed_walk walk_of(const fl_call *c)
{
    return (fl_embed_walk){
        .c = c, .table = "W", .step = fl_in(c, "Grad")->shape.dim[1]};
}

static int64_t count_ids(const fl_call *c)
{
    fl_embed_walk walk = walk_of(c);
    fl_embed_part part;
    int64_t n = 0;
    while (fl_embed_next(&walk, &part))
        n += part.dense ? 0 : part.ids.n;
    return n;
}

/* The rows of one slot; how many. */
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

static fl_err fused(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "W"), *g = fl_in(c, "Grad");
    fl_rows *out = &fl_out_value(c, "Out", 0)->rows;
    fl_embed_walk walk = walk_of(c);
    fl_embed_part part;
    int64_t at = 0;
    FL_TRY(fl_embed_check_all(c, "W"));
    FL_TRY(fl_rows_resize(out, w->dtype, &w->shape, count_ids(c)));
    const size_t size = fl_dtype_size(w->dtype);
    while (fl_embed_next(&walk, &part))
        if (!part.dense && part.ids.n)
            at += copy_slot(&part, g->data, size, fl_rows_index(out) + at,
                            (char *)out->value.data +
                                (size_t)(at * part.ids.width) * size);
    return FL_OK;
}

const fl_op_def fl_op_fused_embed_rows = {
    .type = "fused_embed_rows",
    .in = {{"Ids", FL_MANY}, {"W"}, {"Dense", FL_MANY | FL_OPTIONAL}, {"Grad"}},
    .out = {{"Out"}},
    .attr =
        {
            {"order", FL_ATTR_INTS, .required = true},
            {"pool", FL_ATTR_BOOL, .b = false},
            {"padding_idx", FL_ATTR_LONG, .i = -1},
        },
    .flags = FL_OP_HIDDEN,
    .infer = infer_fused,
    .run = fused,
};
