/* SPDX-License-Identifier: Apache-2.0 */
/* fused_mul_sgd - weight gradient and update in one; the planner makes it.
 *
 *     X [rows.., k..], Out@GRAD [rows.., n], Param [k,n], LearningRate [1]
 *     -> ParamOut, the variable of Param
 *     ParamOut = Param - LearningRate * X^T Out@GRAD
 *
 * The gradient is never written anywhere: the product adds to the weights. */
#include "kernel/gemm.h"
#include "op/op.h"

#include <string.h>

static double rate_of(const fl_tensor *t)
{
    return t->dtype == FL_F64 ? *(const double *)t->data
                              : (double)*(const float *)t->data;
}

static fl_err fused_mul_sgd(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *dy = fl_in(c, "Out@GRAD");
    const fl_tensor *from = fl_in(c, "Param");
    fl_tensor *w = fl_out(c, "ParamOut");
    int64_t rows =
        fl_shape_span(&x->shape, 0, (int)fl_attr_i64(c, "x_num_col_dims"));
    if (from->data != w->data)
        memcpy(w->data, from->data, fl_tensor_bytes(from));
    fl_gemm(w->dtype, true, false, w->shape.dim[0], w->shape.dim[1], rows,
            -rate_of(fl_in(c, "LearningRate")), x->data, dy->data, 1, w->data);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0), *w = fl_meta_in(x, "Param", 0);
    int64_t rows = fl_meta_attr(x, "x_num_col_dims")->i;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (rows < 1 || rows >= m->shape.rank)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, %lld are to be rows",
                       fl_meta_type(x), m->shape.rank, (long long)rows);
    int64_t k = fl_shape_span(&m->shape, (int)rows, m->shape.rank);
    fl_shape weight = {2, {k, -1}}, one = {1, {1}};
    fl_shape out = fl_shape_of((int)rows, m->shape.dim);
    FL_TRY(fl_meta_expect(x, "Param", m->dtype, &weight));
    FL_TRY(fl_meta_expect(x, "LearningRate", m->dtype, &one));
    out.dim[out.rank++] = w->shape.dim[1];
    FL_TRY(fl_meta_expect(x, "Out@GRAD", m->dtype, &out));
    fl_meta_set(x, "ParamOut", 0, w->dtype, &w->shape);
    return FL_OK;
}

const fl_op_def fl_op_fused_mul_sgd = {
    .type = "fused_mul_sgd",
    .in = {{"X"}, {"Out@GRAD"}, {"Param"}, {"LearningRate"}},
    .out = {{"ParamOut"}},
    .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 1}},
    .flags = FL_OP_HIDDEN,
    .infer = infer,
    .run = fused_mul_sgd,
};
