/* SPDX-License-Identifier: Apache-2.0 */
/* matmul    Out = alpha * op(X) op(Y), op as transpose_X and transpose_Y say
 *
 * The last two dims are matrices and those before count a batch; a batch meets
 * one of the same size, or a plain matrix that stands for each of its members.
 * A vector is a row as X and a column as Y, and the dim so made leaves Out.
 *
 * gradient  a member's X@GRAD = alpha * Out@GRAD op(Y)^T, Y@GRAD = alpha *
 *           op(X)^T Out@GRAD, each transposed once more where X or Y is; a
 *           plain matrix beside a batch gets the sum. */
#include "kernel/gemm.h"
#include "op/op.h"

#include <string.h>

/* A batch of matrices as stored; batch 0: a single matrix. */
typedef struct matrices {
    int64_t batch, rows, columns;
} matrices;

/* op(X) is [m,k], op(Y) is [k,n]. */
typedef struct product {
    matrices x, y;
    bool tx, ty;
    int64_t batch, m, n, k;
} product;

static matrices matrices_of(const fl_shape *s, bool row)
{
    if (s->rank == 1)
        return row ? (matrices){0, 1, s->dim[0]} : (matrices){0, s->dim[0], 1};
    return (matrices){
        .batch = s->rank > 2 ? fl_shape_span(s, 0, s->rank - 2) : 0,
        .rows = s->dim[s->rank - 2],
        .columns = s->dim[s->rank - 1],
    };
}

static product product_of(const fl_shape *x, const fl_shape *y, bool tx,
                          bool ty)
{
    product p = {matrices_of(x, true), matrices_of(y, false), tx, ty};
    p.batch = x->rank > 2 ? p.x.batch : y->rank > 2 ? p.y.batch : 1;
    p.m = tx ? p.x.columns : p.x.rows;
    p.k = tx ? p.x.rows : p.x.columns;
    p.n = ty ? p.y.rows : p.y.columns;
    return p;
}

/* If Y is a single matrix, the rows of all X are the rows of one product. */
static product flat(product p, bool batch_x, bool batch_y)
{
    if (batch_x && !batch_y && !p.tx) {
        p.m *= p.batch;
        p.batch = 1;
    }
    return p;
}

static product product_of_call(const fl_call *c)
{
    const fl_shape *x = &fl_in(c, "X")->shape, *y = &fl_in(c, "Y")->shape;
    product p = product_of(x, y, fl_attr_bool(c, "transpose_X"),
                           fl_attr_bool(c, "transpose_Y"));
    if (!p.m || !p.n) /* a shape may have many matrices and no elements */
        p.batch = 0;
    return flat(p, x->rank > 2, y->rank > 2);
}

/* Matrix b of a batch; a single matrix is used for all b. */
static void *member(const fl_tensor *t, int64_t batch, int64_t b)
{
    int64_t size = t->shape.rank > 2 && batch ? fl_tensor_numel(t) / batch : 0;
    return (char *)t->data + (size_t)(b * size) * fl_dtype_size(t->dtype);
}

static fl_err matmul(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    fl_tensor *out = fl_out(c, "Out");
    product p = product_of_call(c);
    int64_t size = p.m * p.n * (int64_t)fl_dtype_size(x->dtype);
    for (int64_t b = 0; b < p.batch; b++)
        fl_gemm(x->dtype, p.tx, p.ty, p.m, p.n, p.k, fl_attr_f32(c, "alpha"),
                member(x, p.batch, b), member(y, p.batch, b), 0,
                (char *)out->data + b * size);
    return FL_OK;
}

/* Compute matrix b of X@GRAD or Y@GRAD; for a single matrix all are added up.
 */
static void grad_x(const product *p, fl_dtype t, double alpha, const void *y,
                   const void *dout, double keep, void *dx)
{
    if (p->tx)
        fl_gemm(t, p->ty, true, p->k, p->m, p->n, alpha, y, dout, keep, dx);
    else
        fl_gemm(t, false, !p->ty, p->m, p->k, p->n, alpha, dout, y, keep, dx);
}

static void grad_y(const product *p, fl_dtype t, double alpha, const void *x,
                   const void *dout, double keep, void *dy)
{
    if (p->ty)
        fl_gemm(t, true, p->tx, p->n, p->k, p->m, alpha, dout, x, keep, dy);
    else
        fl_gemm(t, !p->tx, false, p->k, p->n, p->m, alpha, x, dout, keep, dy);
}

/* The sum over an empty batch is zero. */
static void clear(fl_tensor *t)
{
    if (t)
        memset(t->data, 0, fl_tensor_bytes(t));
}

static fl_err matmul_grad(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    const fl_tensor *dout = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD"), *dy = fl_out(c, "Y@GRAD");
    const double alpha = fl_attr_f32(c, "alpha");
    product p = product_of_call(c);
    int64_t size = p.m * p.n * (int64_t)fl_dtype_size(x->dtype);
    if (!p.batch) {
        clear(dx);
        clear(dy);
    }
    for (int64_t b = 0; b < p.batch; b++) {
        const void *d = (char *)dout->data + b * size;
        if (dx)
            grad_x(&p, x->dtype, alpha, member(y, p.batch, b), d,
                   b && x->shape.rank <= 2, member(dx, p.batch, b));
        if (dy)
            grad_y(&p, x->dtype, alpha, member(x, p.batch, b), d,
                   b && y->shape.rank <= 2, member(dy, p.batch, b));
    }
    return FL_OK;
}

static bool differ(int64_t a, int64_t b)
{
    return a != b && a != -1 && b != -1;
}

static fl_err check_fit(const fl_infer *x, const product *p)
{
    const fl_shape *a = &fl_meta_in(x, "X", 0)->shape;
    const fl_shape *b = &fl_meta_in(x, "Y", 0)->shape;
    int64_t rows = p->ty ? p->y.columns : p->y.rows;
    if (differ(p->k, rows))
        return fl_fail(FL_ESHAPE, "%s: op(X) has %lld columns, op(Y) %lld rows",
                       fl_meta_type(x), (long long)p->k, (long long)rows);
    if (a->rank > 2 && b->rank > 2 && differ(p->x.batch, p->y.batch))
        return fl_fail(FL_ESHAPE, "%s: X has %lld matrices, Y has %lld",
                       fl_meta_type(x), (long long)p->x.batch,
                       (long long)p->y.batch);
    return FL_OK;
}

static fl_shape shape_of_out(const fl_shape *x, const fl_shape *y,
                             const product *p)
{
    const fl_shape *batch = x->rank > 2 ? x : y;
    fl_shape out =
        fl_shape_of(batch->rank > 2 ? batch->rank - 2 : 0, batch->dim);
    if (x->rank > 1 || p->m != 1)
        out.dim[out.rank++] = p->m;
    if (y->rank > 1 || p->n != 1)
        out.dim[out.rank++] = p->n;
    if (!out.rank)
        out = (fl_shape){1, {1}};
    return out;
}

static fl_err product_shape(const fl_infer *x, fl_shape *out)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_check(x, "Y", FL_SET(a->dtype)));
    if (!a->shape.rank || !b->shape.rank)
        return fl_fail(FL_ESHAPE, "%s: X or Y has no dims", fl_meta_type(x));
    product p =
        product_of(&a->shape, &b->shape, fl_meta_attr(x, "transpose_X")->b,
                   fl_meta_attr(x, "transpose_Y")->b);
    FL_TRY(check_fit(x, &p));
    *out = shape_of_out(&a->shape, &b->shape, &p);
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

const fl_op_def fl_op_matmul = {
    .type = "matmul",
    .in = {{"X"}, {"Y"}},
    .out = {{"Out"}},
    .attr = {{"transpose_X", FL_ATTR_BOOL},
             {"transpose_Y", FL_ATTR_BOOL},
             {"alpha", FL_ATTR_FLOAT, .f = 1}},
    .infer = infer,
    .run = matmul,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = matmul_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
