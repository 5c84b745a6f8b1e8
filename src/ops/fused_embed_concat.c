/* SPDX-License-Identifier: Apache-2.0 */
/* fused_embed_concat: n lookups in one table, each summed up by sequence, and a
 * concat of the results with other columns, in one pass.
 *
 *     Ids*    i64 [n,1], with sequences where `pool`
 *     W       the table [v,d]
 *     Dense*  other inputs of the concat, [batch,w]; may be absent
 *     Out     [batch, d for each Ids and w for each Dense]
 *     order   the concat's inputs from left to right: k >= 0 is Ids k, k < 0 is
 *             Dense -(k + 1)
 *     pool    true: lookup_table + sequence_pool(SUM, pad_value 0) of each Ids;
 *             false: lookup_table alone, one id a row
 *     padding_idx  as lookup_table's
 *
 * equals lookup_table (+ sequence_pool) per Ids and concat(axis=1). Sums start
 * from the first row of a sequence and go on in order, as sequence_pool's do;
 * but a padding id is left out where that adds a row of zeros. */
#define FL_SELF "ops/fused_embed_concat.c"
#include "kernel/embed.h"
#include "kernel/move.h"
#include "op/real.h"
#ifdef REAL

static void FN(put_part)(const fl_embed_part *part, const REAL *table,
                         int64_t rows, int64_t step, REAL *out)
{
    size_t bytes = (size_t)part->width * sizeof *out;
    if (part->dense)
        fl_move_runs(rows, bytes, (char *)out, (size_t)step * sizeof *out,
                     part->dense->data, bytes);
    else
        FN(fl_embed_get)(&part->ids, table, out);
}

static fl_err FN(fused)(fl_call *c)
{
    const REAL *w = fl_in(c, "W")->data;
    fl_tensor *y = fl_out(c, "Out");
    fl_embed_walk walk = {.c = c, .table = "W", .step = y->shape.dim[1]};
    fl_embed_part part, next;
    bool more = fl_embed_next(&walk, &next);
    while (more) {
        part = next;
        more = fl_embed_next(&walk, &next);
        if (more && !next.dense)
            fl_embed_warm(&next.ids, w, sizeof *w);
        FN(put_part)
        (&part, w, y->shape.dim[0], walk.step, (REAL *)y->data + part.column);
    }
    return FL_OK;
}

#else

/* Out has the sequences of the concat's first input: those of a pooled one
 * without the last level, which only the kernel can cut off. */
static fl_err infer_fused(fl_infer *x)
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

static fl_err fused(fl_call *c)
{
    const fl_attr *order = fl_attr_get(c, "order");
    FL_TRY(fl_embed_check_all(c, "W"));
    if (order->n && order->longs[0] >= 0 && fl_attr_bool(c, "pool")) {
        fl_lod upper = fl_in_at(c, "Ids", (int)order->longs[0])->lod;
        upper.levels--;
        FL_TRY(fl_lod_ref(&fl_out(c, "Out")->lod, &upper));
    }
    return fl_in(c, "W")->dtype == FL_F64 ? fused_f64(c) : fused_f32(c);
}

const fl_op_def fl_op_fused_embed_concat = {
    .type = "fused_embed_concat",
    .in = {{"Ids", FL_MANY}, {"W"}, {"Dense", FL_MANY | FL_OPTIONAL}},
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

#endif
