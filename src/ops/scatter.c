/* SPDX-License-Identifier: Apache-2.0 */
/* scatter   Out = X, but row Ids[i] is Updates[i]; without `overwrite` the sum
 *           of the Updates for it
 * gradient  X@GRAD = Out@GRAD, but 0 in the rows of Ids
 *           Updates@GRAD[i] = Out@GRAD[Ids[i]] */
#define FL_SELF "ops/scatter.c"
#include "op/number.h"

#ifndef FL_OPS_SCATTER_C
#define FL_OPS_SCATTER_C

#include "kernel/move.h"

#include <string.h>

static int64_t width_of(const fl_tensor *t)
{
    return fl_shape_span(&t->shape, 1, t->shape.rank);
}

#endif
#ifdef NUM

static void FN(clear)(const fl_tensor *ids, fl_tensor *y)
{
    const int64_t width = width_of(y);
    for (int64_t i = 0, n = fl_tensor_numel(ids); i < n; i++) {
        NUM *row = (NUM *)y->data + fl_move_index_at(ids, i) * width;
        for (int64_t j = 0; j < width; j++)
            row[j] = 0;
    }
}

static fl_err FN(scatter)(fl_call *c)
{
    const fl_tensor *ids = fl_in(c, "Ids");
    const NUM *from = fl_in(c, "Updates")->data;
    fl_tensor *y = fl_out(c, "Out");
    const int64_t width = width_of(y);
    FN(clear)(ids, y);
    for (int64_t i = 0, n = fl_tensor_numel(ids); i < n; i++) {
        NUM *row = (NUM *)y->data + fl_move_index_at(ids, i) * width;
        const bool add = !fl_attr_bool(c, "overwrite");
        for (int64_t j = 0; j < width; j++)
            row[j] =
                (NUM)((WRAP)from[i * width + j] + (add ? (WRAP)row[j] : 0));
    }
    return FL_OK;
}

#ifdef REAL

static fl_err FN(scatter_grad)(fl_call *c)
{
    const fl_tensor *ids = fl_in(c, "Ids"), *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD"), *du = fl_out(c, "Updates@GRAD");
    const size_t row = (size_t)width_of(dy) * sizeof(REAL);
    if (dx && dx->data != dy->data && fl_tensor_bytes(dy))
        memcpy(dx->data, dy->data, fl_tensor_bytes(dy));
    for (int64_t i = 0, n = fl_tensor_numel(ids); du && row && i < n; i++)
        memcpy((char *)du->data + (size_t)i * row,
               (char *)dy->data + (size_t)fl_move_index_at(ids, i) * row, row);
    if (dx)
        FN(clear)(ids, dx);
    return FL_OK;
}

#endif

#else

FL_NUMBER_KERNEL(scatter)

static fl_err check_ids(const fl_call *c, int64_t rows)
{
    const fl_tensor *ids = fl_in(c, "Ids");
    for (int64_t i = 0, n = fl_tensor_numel(ids); i < n; i++) {
        const int64_t id = fl_move_index_at(ids, i);
        if (id < 0 || id >= rows)
            return fl_fail(FL_EINVAL, "%s: Ids %lld is %lld, X has %lld rows",
                           c->def->type, (long long)i, (long long)id,
                           (long long)rows);
    }
    return FL_OK;
}

static fl_err scatter_run(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    FL_TRY(check_ids(c, x->shape.dim[0]));
    if (x->data != y->data && fl_tensor_bytes(x))
        memcpy(y->data, x->data, fl_tensor_bytes(x));
    return scatter(c);
}

static fl_err scatter_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    FL_TRY(check_ids(c, dy->shape.dim[0]));
    return dy->dtype == FL_F64 ? scatter_grad_f64(c) : scatter_grad_f32(c);
}

/* Check that Updates has as many rows as there are Ids, and rows like those of
 * `whole`. */
static fl_err check_inputs(const fl_infer *x, const char *whole)
{
    const fl_meta *of = fl_meta_in(x, whole, 0);
    const fl_shape *ids = &fl_meta_in(x, "Ids", 0)->shape;
    char text[FL_SHAPE_TEXT];
    fl_shape want = of->shape;
    FL_TRY(fl_meta_check(x, "Ids", FL_INDEXES));
    if (ids->rank != 1 && !(ids->rank == 2 && ids->dim[1] == 1))
        return fl_fail(FL_ESHAPE, "%s: Ids is %s, expected [n] or [n,1]",
                       fl_meta_type(x), fl_shape_text(ids, text));
    if (want.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: %s has no rows", fl_meta_type(x), whole);
    want.dim[0] = ids->dim[0];
    return fl_meta_expect(x, "Updates", of->dtype, &want);
}

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    FL_TRY(check_inputs(x, "X"));
    return fl_infer_same(x);
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *dy = fl_meta_in(x, "Out@GRAD", 0);
    const fl_meta *updates = fl_meta_in(x, "Updates", 0);
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_REALS));
    FL_TRY(check_inputs(x, "Out@GRAD"));
    fl_meta_set(x, "X@GRAD", 0, dy->dtype, &dy->shape);
    fl_meta_set(x, "Updates@GRAD", 0, dy->dtype, &updates->shape);
    return FL_OK;
}

const fl_op_def fl_op_scatter = {
    .type = "scatter",
    .in = {{"X"}, {"Ids", FL_NOGRAD}, {"Updates"}},
    .out = {{"Out"}},
    .attr = {{"overwrite", FL_ATTR_BOOL, .b = true}},
    .infer = infer,
    .run = scatter_run,
    .grad_in = {"Ids", "Updates", "Out@GRAD"},
    .grad_run = scatter_grad,
    .grad_infer = infer_grad,
};

#endif
