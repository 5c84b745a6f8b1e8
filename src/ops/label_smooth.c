/* SPDX-License-Identifier: Apache-2.0 */
/* label_smooth  Out = (1 - epsilon) * X + epsilon * PriorDist, or epsilon /
 *               classes where no prior is given
 * gradient      X@GRAD = (1 - epsilon) * Out@GRAD */
#define FL_SELF "ops/label_smooth.c"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(mix)(int64_t n, REAL keep, const REAL *x, REAL add,
                              REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = keep * x[i] + add;
}

FL_CLONES static void FN(mix_prior)(int64_t n, REAL keep, const REAL *x,
                                    REAL epsilon, const REAL *prior, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = keep * x[i] + epsilon * prior[i];
}

static fl_err FN(label_smooth)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *prior = fl_in(c, "PriorDist");
    const REAL *from = x->data, epsilon = fl_attr_f32(c, "epsilon");
    REAL *y = fl_out(c, "Out")->data;
    int64_t n = fl_tensor_numel(x), classes = x->shape.dim[x->shape.rank - 1];
    if (!prior)
        FN(mix)(n, 1 - epsilon, from, epsilon / (REAL)classes, y);
    for (int64_t i = 0; prior && i < n; i += classes)
        FN(mix_prior)
    (classes, 1 - epsilon, from + i, epsilon, prior->data, y + i);
    return FL_OK;
}

static fl_err FN(label_smooth_grad)(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    FN(mix)
    (fl_tensor_numel(dy), 1 - (REAL)fl_attr_f32(c, "epsilon"), dy->data, 0,
     fl_out(c, "X@GRAD")->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(label_smooth)
FL_REAL_KERNEL(label_smooth_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_meta *prior = fl_meta_in(x, "PriorDist", 0);
    int rank = in->shape.rank;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (rank < 1)
        return fl_fail(FL_ESHAPE, "%s: X has no dims", fl_meta_type(x));
    fl_shape want = {2, {1, in->shape.dim[rank - 1]}};
    if (prior && prior->shape.rank == 1)
        want = (fl_shape){1, {in->shape.dim[rank - 1]}};
    FL_TRY(fl_meta_expect(x, "PriorDist", in->dtype, &want));
    return fl_infer_same(x);
}

const fl_op_def fl_op_label_smooth = {
    .type = "label_smooth",
    .in = {{"X"}, {"PriorDist", FL_OPTIONAL | FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"epsilon", FL_ATTR_FLOAT}},
    .infer = infer,
    .run = label_smooth,
    .grad_in = {"Out@GRAD"},
    .grad_run = label_smooth_grad,
    .grad_infer = fl_infer_grad_alike,
};

#endif
