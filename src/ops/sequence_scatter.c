/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_scatter  Out = X; in row s, for each i of sequence s, Updates[i] is
 *                   added to column Ids[i]
 * gradient          X@GRAD = Out@GRAD; Updates@GRAD[i] is Out@GRAD there */
#define FL_SELF "ops/sequence_scatter.c"
#include "op/real.h"

#ifndef FL_OPS_SEQUENCE_SCATTER_C
#define FL_OPS_SEQUENCE_SCATTER_C

#include "kernel/move.h"
#include "kernel/sequence.h"

#include <string.h>

static fl_err check_ids(const fl_call *c, int64_t columns)
{
    const fl_tensor *ids = fl_in(c, "Ids");
    for (int64_t i = 0, n = fl_tensor_numel(ids); i < n; i++) {
        const int64_t id = fl_move_index_at(ids, i);
        if (id < 0 || id >= columns)
            return fl_fail(
                FL_EINVAL, "%s: Ids %lld is %lld, a row of X has %lld",
                c->def->type, (long long)i, (long long)id, (long long)columns);
    }
    return FL_OK;
}

#endif
#ifdef REAL

static fl_err FN(sequence_scatter)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *ids = fl_in(c, "Ids");
    const fl_sequences of = fl_sequences_of(&ids->lod);
    const REAL *from = fl_in(c, "Updates")->data;
    fl_tensor *y = fl_out(c, "Out");
    FL_TRY(check_ids(c, x->shape.dim[1]));
    if (x->data != y->data && fl_tensor_bytes(x))
        memcpy(y->data, x->data, fl_tensor_bytes(x));
    for (int64_t s = 0; s < of.n; s++) {
        REAL *row = (REAL *)y->data + s * x->shape.dim[1];
        for (int64_t i = of.off[s]; i < of.off[s + 1]; i++)
            row[fl_move_index_at(ids, i)] += from[i];
    }
    return FL_OK;
}

static fl_err FN(back)(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD"), *ids = fl_in(c, "Ids");
    const fl_sequences of = fl_sequences_of(&ids->lod);
    fl_tensor *dx = fl_out(c, "X@GRAD"), *du = fl_out(c, "Updates@GRAD");
    FL_TRY(check_ids(c, dy->shape.dim[1]));
    for (int64_t s = 0; du && s < of.n; s++) {
        const REAL *row = (REAL *)dy->data + s * dy->shape.dim[1];
        for (int64_t i = of.off[s]; i < of.off[s + 1]; i++)
            ((REAL *)du->data)[i] = row[fl_move_index_at(ids, i)];
    }
    if (dx && dx->data != dy->data && fl_tensor_bytes(dy))
        memcpy(dx->data, dy->data, fl_tensor_bytes(dy));
    return FL_OK;
}

#else

FL_REAL_KERNEL(sequence_scatter)

static fl_err sequence_scatter_grad(fl_call *c)
{
    return fl_in(c, "Out@GRAD")->dtype == FL_F64 ? back_f64(c) : back_f32(c);
}

/* Check that Ids and Updates have the same shape, and a sequence for each row
 * of `whole`. */
static fl_err check_inputs(const fl_infer *x, const char *whole)
{
    const fl_meta *of = fl_meta_in(x, whole, 0);
    const fl_meta *ids = fl_meta_in(x, "Ids", 0);
    char s[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, whole, FL_REALS));
    FL_TRY(fl_meta_check(x, "Ids", FL_INDEXES));
    FL_TRY(fl_sequence_check(x, "Ids", 0));
    FL_TRY(fl_meta_expect(x, "Updates", of->dtype, &ids->shape));
    if (of->shape.rank != 2 || ids->shape.rank != 2 || ids->shape.dim[1] != 1)
        return fl_fail(FL_ESHAPE,
                       "%s: %s has %d dims, Ids is %s, expected 2 "
                       "and [n,1]",
                       fl_meta_type(x), whole, of->shape.rank,
                       fl_shape_text(&ids->shape, s));
    if (fl_meta_running(x) && fl_sequences_of(ids->lod).n != of->shape.dim[0])
        return fl_fail(FL_ESHAPE, "%s: %s has %lld rows, Ids %lld sequences",
                       fl_meta_type(x), whole, (long long)of->shape.dim[0],
                       (long long)fl_sequences_of(ids->lod).n);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    FL_TRY(check_inputs(x, "X"));
    return fl_infer_same(x);
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *dy = fl_meta_in(x, "Out@GRAD", 0);
    fl_meta *du = fl_meta_out(x, "Updates@GRAD", 0);
    FL_TRY(check_inputs(x, "Out@GRAD"));
    fl_meta_set(x, "X@GRAD", 0, dy->dtype, &dy->shape);
    if (du)
        *du = *fl_meta_in(x, "Updates", 0);
    return FL_OK;
}

const fl_op_def fl_op_sequence_scatter = {
    .type = "sequence_scatter",
    .in = {{"X"}, {"Ids", FL_NOGRAD}, {"Updates"}},
    .out = {{"Out"}},
    .infer = infer,
    .run = sequence_scatter,
    .grad_in = {"Ids", "Updates", "Out@GRAD"},
    .grad_run = sequence_scatter_grad,
    .grad_infer = infer_grad,
};

#endif
