/* SPDX-License-Identifier: Apache-2.0 */
/* add_position_encoding  Out = alpha * X + beta * p, where row t of a sequence
 *                        (of X [N,T,D], or by the LoD of X [rows,D]) has
 *                        p[k] = sin(t / 10000^(k / (h-1))), p[h+k] = cos of the
 *                        same, h = D / 2
 * gradient               X@GRAD = alpha * Out@GRAD */
#define FL_SELF "ops/add_position_encoding.c"
#include "op/real.h"

#ifndef FL_OPS_ADD_POSITION_ENCODING_C
#define FL_OPS_ADD_POSITION_ENCODING_C

#include "kernel/sequence.h"

#endif
#ifdef REAL

static void FN(add_rows)(int64_t n, int64_t half, REAL alpha, REAL beta,
                         const REAL *x, REAL *y)
{
    for (int64_t t = 0; t < n; t++, x += 2 * half, y += 2 * half)
        for (int64_t k = 0; k < half; k++) {
            const double by =
                half > 1 ? pow(10000, (double)k / (double)(half - 1)) : 10000;
            const double at = (double)t / by;
            y[k] = alpha * x[k] + beta * (REAL)sin(at);
            y[half + k] = alpha * x[half + k] + beta * (REAL)cos(at);
        }
}

static fl_err FN(add_position_encoding)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL alpha = fl_attr_f32(c, "alpha"), beta = fl_attr_f32(c, "beta");
    const int64_t *dim = in->shape.dim, half = dim[in->shape.rank - 1] / 2;
    const REAL *x = in->data;
    REAL *y = fl_out(c, "Out")->data;
    if (in->shape.rank == 3) {
        for (int64_t i = 0; i < dim[0]; i++) {
            const int64_t at = i * dim[1] * 2 * half;
            FN(add_rows)(dim[1], half, alpha, beta, x + at, y + at);
        }
        return FL_OK;
    }
    const fl_sequences of = fl_sequences_of(&in->lod);
    for (int64_t s = 0; s < of.n; s++) {
        const int64_t at = of.off[s] * 2 * half;
        FN(add_rows)
        (of.off[s + 1] - of.off[s], half, alpha, beta, x + at, y + at);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(add_position_encoding)

static fl_err infer(fl_infer *x)
{
    const fl_shape *s = &fl_meta_in(x, "X", 0)->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    const int64_t width = s->rank ? s->dim[s->rank - 1] : 0;
    if ((s->rank != 2 && s->rank != 3) || width < 2 || width % 2)
        return fl_fail(FL_ESHAPE,
                       "%s: X is %s, expected [N,T,D] or sequences [rows,D], "
                       "D even",
                       fl_meta_type(x), fl_shape_text(s, text));
    if (s->rank == 2)
        FL_TRY(fl_sequence_check(x, "X", 0));
    return fl_infer_same(x);
}

static fl_err make_grad(fl_grads *g)
{
    const fl_attr *alpha = fl_desc_attr(g->fwd, "alpha");
    fl_desc_set_attr(
        fl_grad_back(g, "scale"),
        &(fl_attr){"scale", FL_ATTR_FLOAT, .f = alpha ? alpha->f : 1});
    return FL_OK;
}

const fl_op_def fl_op_add_position_encoding = {
    .type = "add_position_encoding",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"alpha", FL_ATTR_FLOAT, .f = 1}, {"beta", FL_ATTR_FLOAT, .f = 1}},
    .infer = infer,
    .run = add_position_encoding,
    .make_grad = make_grad,
};

#endif
