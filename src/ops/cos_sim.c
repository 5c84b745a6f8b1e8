/* SPDX-License-Identifier: Apache-2.0 */
/* cos_sim   Out = X . Y / (XNorm * YNorm), row by row; Y may have one row, for
 *           all of X. XNorm and YNorm are the lengths of the rows.
 * gradient  X@GRAD = Out@GRAD * (Y / (XNorm * YNorm) - Out * X / XNorm^2), and
 *           the same for Y, summed if it is one row */
#define FL_SELF "ops/cos_sim.c"
#include "op/real.h"

#include <string.h>

#ifdef REAL

static void FN(norms)(const fl_tensor *x, int64_t width, REAL *out)
{
    const REAL *row = x->data;
    for (int64_t i = 0; i < x->shape.dim[0]; i++, row += width)
        out[i] = RM(sqrt)(FN(fl_dot)(width, row, row));
}

static fl_err FN(cos_sim)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    REAL *out = fl_out(c, "Out")->data, *xn = fl_out(c, "XNorm")->data;
    REAL *yn = fl_out(c, "YNorm")->data;
    int64_t width = fl_shape_span(&x->shape, 1, x->shape.rank);
    int64_t step = y->shape.dim[0] == 1 ? 0 : 1;
    FN(norms)(x, width, xn);
    FN(norms)(y, width, yn);
    for (int64_t i = 0; i < x->shape.dim[0]; i++) {
        const REAL *a = (const REAL *)x->data + i * width;
        const REAL *b = (const REAL *)y->data + i * step * width;
        out[i] = FN(fl_dot)(width, a, b) / (xn[i] * yn[i * step]);
    }
    return FL_OK;
}

/* d += dy * (other * inv - self * fix) */
FL_CLONES static void FN(add_grad)(int64_t n, REAL dy, REAL inv, REAL fix,
                                   const REAL *other, const REAL *self, REAL *d)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        d[i] += dy * (other[i] * inv - self[i] * fix);
}

static REAL *FN(cleared)(fl_tensor *t)
{
    return t ? memset(t->data, 0, fl_tensor_bytes(t)) : NULL;
}

static fl_err FN(cos_sim_grad)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    const REAL *out = fl_in(c, "Out")->data, *xn = fl_in(c, "XNorm")->data;
    const REAL *yn = fl_in(c, "YNorm")->data;
    const REAL *dout = fl_in(c, "Out@GRAD")->data;
    REAL *dx = FN(cleared)(fl_out(c, "X@GRAD"));
    REAL *dy = FN(cleared)(fl_out(c, "Y@GRAD"));
    int64_t width = fl_shape_span(&x->shape, 1, x->shape.rank);
    const bool one_y = y->shape.dim[0] == 1;
    double *total = fl_scratch(c, width, sizeof *total);
    if (!total)
        return FL_ENOMEM;
    if (one_y)
        FN(fl_rows_clear)(width, dy, total);
    for (int64_t i = 0; i < x->shape.dim[0]; i++) {
        const int64_t j = one_y ? 0 : i;
        const REAL *a = (const REAL *)x->data + i * width;
        const REAL *b = (const REAL *)y->data + j * width;
        REAL inv = 1 / (xn[i] * yn[j]);
        if (dx)
            FN(add_grad)
        (width, dout[i], inv, out[i] / (xn[i] * xn[i]), b, a, dx + i * width);
        if (dy)
            FN(add_grad)
        (width, dout[i], inv, out[i] / (yn[j] * yn[j]), a, b, dy + j * width);
        if (one_y)
            FN(fl_rows_added)(width, i, x->shape.dim[0], dy, total);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(cos_sim)
FL_REAL_KERNEL(cos_sim_grad)

/* Check the shapes of X and Y. */
static fl_err check_rows(const fl_infer *x)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    fl_shape want = a->shape;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (a->shape.rank < 2)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, expected 2 or more",
                       fl_meta_type(x), a->shape.rank);
    if (b->shape.rank && b->shape.dim[0] == 1)
        want.dim[0] = 1;
    return fl_meta_expect(x, "Y", a->dtype, &want);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    FL_TRY(check_rows(x));
    fl_shape rows = {2, {a->shape.dim[0], 1}}, y = {2, {b->shape.dim[0], 1}};
    fl_meta_set(x, "Out", 0, a->dtype, &rows);
    fl_meta_set(x, "XNorm", 0, a->dtype, &rows);
    fl_meta_set(x, "YNorm", 0, a->dtype, &y);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    FL_TRY(fl_infer_grad_of_rule(x));
    fl_shape rows = {2, {a->shape.dim[0], 1}}, y = {2, {b->shape.dim[0], 1}};
    FL_TRY(fl_meta_expect(x, "Out", a->dtype, &rows));
    FL_TRY(fl_meta_expect(x, "XNorm", a->dtype, &rows));
    return fl_meta_expect(x, "YNorm", a->dtype, &y);
}

const fl_op_def fl_op_cos_sim = {
    .type = "cos_sim",
    .in = {{"X"}, {"Y"}},
    .out = {{"Out"}, {"XNorm", FL_INTERMEDIATE}, {"YNorm", FL_INTERMEDIATE}},
    .infer = infer,
    .run = cos_sim,
    .grad_in = {"X", "Y", "Out", "XNorm", "YNorm", "Out@GRAD"},
    .grad_run = cos_sim_grad,
    .grad_infer = infer_grad,
};

#endif
