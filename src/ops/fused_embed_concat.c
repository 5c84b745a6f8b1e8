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

static fl_err fused(fl_call *c)
{
    FL_TRY(fl_embed_check_all(c, "W"));
    FL_TRY(fl_embed_cut_lod(c));
    return fl_in(c, "W")->dtype == FL_F64 ? fused_f64(c) : fused_f32(c);
}

const fl_op_def fl_op_fused_embed_concat = {
    .type = "fused_embed_concat",
    .in = {{"Ids", FL_MANY}, {"W"}, {"Dense", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out"}},
    .attr = {FL_EMBED_ATTRS},
    .flags = FL_OP_HIDDEN,
    .infer = fl_embed_infer_concat,
    .run = fused,
};

#endif
