/* SPDX-License-Identifier: Apache-2.0 */
/* mul       Out    = X Y, of matrices: X's first x_num_col_dims dims are rows
 *                    [m,k], Y's first y_num_col_dims dims are rows [k,n]; Out
 *                    has X's row dims and Y's column dims
 * gradient  X@GRAD = Out@GRAD Y^T
 *           Y@GRAD = X^T Out@GRAD */
#include "kernel/gemm.h"
#include "op/op.h"

typedef struct sides {
    int64_t m, n, k;
} sides;

static sides sides_of(const fl_call *c)
{
    int x = (int)fl_attr_i64(c, "x_num_col_dims");
    int y = (int)fl_attr_i64(c, "y_num_col_dims");
    const fl_shape *xs = &fl_in(c, "X")->shape, *ys = &fl_in(c, "Y")->shape;
    return (sides){
        .m = fl_shape_span(xs, 0, x),
        .n = fl_shape_span(ys, y, ys->rank),
        .k = fl_shape_span(ys, 0, y),
    };
}

static fl_err mul(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    sides s = sides_of(c);
    fl_gemm(x->dtype, false, false, s.m, s.n, s.k, 1, x->data, y->data, 0,
            fl_out(c, "Out")->data);
    return FL_OK;
}

static fl_err mul_grad(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    const fl_tensor *dout = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD"), *dy = fl_out(c, "Y@GRAD");
    sides s = sides_of(c);
    if (dx)
        fl_gemm(x->dtype, false, true, s.m, s.k, s.n, 1, dout->data, y->data, 0,
                dx->data);
    if (dy)
        fl_gemm(x->dtype, true, false, s.k, s.n, s.m, 1, x->data, dout->data, 0,
                dy->data);
    return FL_OK;
}

static fl_err check_columns(const fl_infer *x, const char *slot, int64_t rows)
{
    const fl_shape *s = &fl_meta_in(x, slot, 0)->shape;
    char text[FL_SHAPE_TEXT];
    if (rows >= 1 && rows < s->rank)
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s %s has no columns after %lld dims",
                   fl_meta_type(x), slot, fl_shape_text(s, text),
                   (long long)rows);
}

static fl_err product_shape(const fl_infer *x, fl_shape *out)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    int64_t xn = fl_meta_attr(x, "x_num_col_dims")->i;
    int64_t yn = fl_meta_attr(x, "y_num_col_dims")->i;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_check(x, "Y", FL_SET(a->dtype)));
    FL_TRY(check_columns(x, "X", xn));
    FL_TRY(check_columns(x, "Y", yn));
    int64_t columns = fl_shape_span(&a->shape, (int)xn, a->shape.rank);
    int64_t rows = fl_shape_span(&b->shape, 0, (int)yn);
    if (columns != rows && columns >= 0 && rows >= 0)
        return fl_fail(FL_ESHAPE, "%s: X has %lld columns, Y has %lld rows",
                       fl_meta_type(x), (long long)columns, (long long)rows);
    if (xn + b->shape.rank - yn > FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: Out has %lld dims, at most %d",
                       fl_meta_type(x), (long long)(xn + b->shape.rank - yn),
                       FL_MAX_RANK);
    *out = fl_shape_of((int)xn, a->shape.dim);
    for (int i = (int)yn; i < b->shape.rank; i++)
        out->dim[out->rank++] = b->shape.dim[i];
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    fl_shape out;
    FL_TRY(product_shape(x, &out));
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &out);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

const fl_op_def fl_op_mul = {
    .type = "mul",
    .in = {{"X"}, {"Y"}},
    .out = {{"Out"}},
    .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 1},
             {"y_num_col_dims", FL_ATTR_INT, .i = 1}},
    .infer = infer,
    .run = mul,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = mul_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
