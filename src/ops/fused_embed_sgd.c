/* SPDX-License-Identifier: Apache-2.0 */
/* fused_embed_sgd: the update of a table from the gradient of a concat of
 * (pooled) lookups, without the selected rows in between.
 *
 *     Ids*          i64 [n,1], with sequences where `pool`
 *     Param         the table [v,d]
 *     Dense*        the other inputs of the concat, for their widths alone
 *     Grad          gradient of the concat [batch, columns]
 *     LearningRate  [1]
 *     ParamOut      the variable of Param
 *     order, pool   as fused_embed_concat's
 *     padding_idx   rows of this id stay as they are; -1: none. Fluid's sparse
 *                   gradient updates the padding row, its dense one does not
 *
 * For each Ids from left to right, each row and each of its ids in order:
 * W[id] -= LearningRate * Grad[row, columns of the slot]. Equals concat_grad +
 * sequence_pool_grad + lookup_table_grad + sum + sgd but for the order in which
 * rows that stand several times are added up. */
#define FL_SELF "ops/fused_embed_sgd.c"
#include "kernel/embed.h"
#include "op/real.h"

#include <string.h>
#ifdef REAL

static void FN(apply)(fl_call *c, double lr, REAL *table)
{
    const fl_tensor *g = fl_in(c, "Grad");
    fl_embed_walk walk = {.c = c, .table = "Param", .step = g->shape.dim[1]};
    fl_embed_part part, next;
    bool more = fl_embed_next(&walk, &next);
    while (more) {
        part = next;
        more = fl_embed_next(&walk, &next);
        if (more && !next.dense)
            fl_embed_warm(&next.ids, table, sizeof *table);
        if (!part.dense)
            FN(fl_embed_add)
        (&part.ids, -(REAL)lr, (const REAL *)g->data + part.column, table);
    }
}

#else

static fl_err infer_fused(fl_infer *x)
{
    const fl_meta *w = fl_meta_in(x, "Param", 0), *g = fl_meta_in(x, "Grad", 0);
    const fl_meta *lr = fl_meta_in(x, "LearningRate", 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    fl_shape want;
    FL_TRY(fl_embed_infer(x, "Param", &want));
    if (g->dtype != w->dtype || !fl_shape_equal(&g->shape, &want))
        return fl_fail(FL_ESHAPE,
                       "fused_embed_sgd: Grad is %s%s, expected %s%s",
                       fl_dtype_name(g->dtype), fl_shape_text(&g->shape, s),
                       fl_dtype_name(w->dtype), fl_shape_text(&want, t));
    if (fl_shape_numel(&lr->shape) != 1)
        return fl_fail(FL_ESHAPE,
                       "fused_embed_sgd: LearningRate is %s, expected [1]",
                       fl_shape_text(&lr->shape, s));
    fl_meta_set(x, "ParamOut", 0, w->dtype, &w->shape);
    return FL_OK;
}

static fl_err fused(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "Param"), *rate = fl_in(c, "LearningRate");
    fl_tensor *out = fl_out(c, "ParamOut");
    double lr;
    FL_TRY(fl_embed_check_all(c, "Param"));
    FL_TRY(fl_convert(1, rate->dtype, rate->data, FL_F64, &lr));
    if (out->data != w->data)
        memcpy(out->data, w->data, fl_tensor_bytes(w));
    if (w->dtype == FL_F64)
        apply_f64(c, lr, out->data);
    else
        apply_f32(c, lr, out->data);
    return FL_OK;
}

const fl_op_def fl_op_fused_embed_sgd = {
    .type = "fused_embed_sgd",
    .in = {{"Ids", FL_MANY},
           {"Param"},
           {"Dense", FL_MANY | FL_OPTIONAL},
           {"Grad"},
           {"LearningRate"}},
    .out = {{"ParamOut"}},
    .attr = {FL_EMBED_ATTRS},
    .flags = FL_OP_HIDDEN,
    .infer = infer_fused,
    .run = fused,
};

#endif
