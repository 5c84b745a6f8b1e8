/* SPDX-License-Identifier: Apache-2.0 */
/* bilinear_tensor_product  Out[n,s] = X[n] Weight[s] Y[n]^T + Bias[s], with
 *                          X [N,M], Y [N,K], Weight [S,M,K], Bias [1,S]
 * gradient, with d = Out@GRAD[n,s], summed over n (for Weight and Bias) or s
 *                          X@GRAD[n]      d * Weight[s] Y[n]^T
 *                          Y@GRAD[n]      d * X[n] Weight[s]
 *                          Weight@GRAD[s] d * X[n]^T Y[n]
 *                          Bias@GRAD[s]   d */
#define FL_SELF "ops/bilinear_tensor_product.c"
#include "op/real.h"

#ifndef FL_OPS_BILINEAR_TENSOR_PRODUCT_C
#define FL_OPS_BILINEAR_TENSOR_PRODUCT_C

typedef struct sizes {
    int64_t n, m, k, s;
} sizes;

static sizes sizes_of(const fl_call *c)
{
    const int64_t *w = fl_in(c, "Weight")->shape.dim;
    return (sizes){fl_in(c, "X")->shape.dim[0], w[1], w[2], w[0]};
}

#endif
#ifdef REAL

static fl_err FN(product)(fl_call *c)
{
    const sizes g = sizes_of(c);
    const REAL *x = fl_in(c, "X")->data, *y = fl_in(c, "Y")->data;
    const REAL *w = fl_in(c, "Weight")->data;
    const fl_tensor *bias = fl_in(c, "Bias");
    REAL *out = fl_out(c, "Out")->data;
    for (int64_t n = 0; n < g.n; n++)
        for (int64_t s = 0; s < g.s; s++) {
            REAL sum = bias ? ((REAL *)bias->data)[s] : 0;
            for (int64_t m = 0; m < g.m; m++)
                sum += x[n * g.m + m] *
                       FN(fl_dot)(g.k, w + (s * g.m + m) * g.k, y + n * g.k);
            *out++ = sum;
        }
    return FL_OK;
}

/* Add the contribution of one element of Out to each gradient; NULL: not
 * needed. */
typedef struct FN(slopes) {
    REAL *x, *y, *w;
} FN(slopes);

static void FN(give)(sizes g, REAL d, const REAL *x, const REAL *y,
                     const REAL *w, FN(slopes) to)
{
    for (int64_t m = 0; m < g.m; m++, w += g.k) {
        if (to.x)
            to.x[m] += d * FN(fl_dot)(g.k, w, y);
        if (to.y)
            FN(fl_axpy)(g.k, d * x[m], w, to.y);
        if (to.w)
            FN(fl_axpy)(g.k, d * x[m], y, to.w + m * g.k);
    }
}

static fl_err FN(product_grad)(fl_call *c)
{
    const sizes g = sizes_of(c);
    const REAL *x = fl_in(c, "X")->data, *y = fl_in(c, "Y")->data;
    const REAL *w = fl_in(c, "Weight")->data;
    const REAL *d = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_cleared(fl_out(c, "X@GRAD"));
    REAL *dy = fl_cleared(fl_out(c, "Y@GRAD"));
    REAL *dw = fl_cleared(fl_out(c, "Weight@GRAD"));
    REAL *db = fl_cleared(fl_out(c, "Bias@GRAD"));
    double *total = fl_scratch(c, g.s, sizeof *total);
    if (!total)
        return FL_ENOMEM;
    FN(fl_rows_clear)(g.s, db, total);
    for (int64_t n = 0; n < g.n; n++) {
        for (int64_t s = 0; s < g.s; s++, d++) {
            const int64_t at = s * g.m * g.k;
            FN(give)
            (g, *d, x + n * g.m, y + n * g.k, w + at,
             (FN(slopes)){dx ? dx + n * g.m : NULL, dy ? dy + n * g.k : NULL,
                          dw ? dw + at : NULL});
            if (db)
                db[s] += *d;
        }
        FN(fl_rows_added)(g.s, n, g.n, db, total);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(product)
FL_REAL_KERNEL(product_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *w = fl_meta_in(x, "Weight", 0);
    const fl_meta *in = fl_meta_in(x, "X", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "Weight", FL_REALS));
    if (w->shape.rank != 3 || in->shape.rank != 2)
        return fl_fail(
            FL_ESHAPE, "%s: Weight is %s, expected [S,M,K]; X has %d dims",
            fl_meta_type(x), fl_shape_text(&w->shape, text), in->shape.rank);
    const int64_t *s = w->shape.dim, n = in->shape.dim[0];
    FL_TRY(fl_meta_expect(x, "X", w->dtype, &(fl_shape){2, {n, s[1]}}));
    FL_TRY(fl_meta_expect(x, "Y", w->dtype, &(fl_shape){2, {n, s[2]}}));
    FL_TRY(fl_meta_expect(x, "Bias", w->dtype, &(fl_shape){2, {1, s[0]}}));
    fl_meta_set(x, "Out", 0, w->dtype, &(fl_shape){2, {n, s[0]}});
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

const fl_op_def fl_op_bilinear_tensor_product = {
    .type = "bilinear_tensor_product",
    .in = {{"X"}, {"Y"}, {"Weight"}, {"Bias", FL_OPTIONAL}},
    .out = {{"Out"}},
    .infer = infer,
    .run = product,
    .grad_in = {"X", "Y", "Weight", "Bias", "Out@GRAD"},
    .grad_run = product_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
