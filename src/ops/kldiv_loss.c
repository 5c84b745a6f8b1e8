/* SPDX-License-Identifier: Apache-2.0 */
/* kldiv_loss  loss = Target > 0 ? Target * (log(Target) - X) : 0, element by
 *             element; X holds logarithms. `reduction` none: Loss = loss; sum,
 *             mean, batchmean (the sum over the rows of X): [1]
 * gradient    X@GRAD = Target > 0 ? -Target * Loss@GRAD : 0, divided likewise
 */
#define FL_SELF "ops/kldiv_loss.c"
#include "op/real.h"

#ifndef FL_OPS_KLDIV_LOSS_C
#define FL_OPS_KLDIV_LOSS_C

#include <string.h>

/* The divisor of the sum; 0: the losses are not summed. */
static double divisor(const char *reduction, const fl_shape *x)
{
    const int64_t n = fl_shape_numel(x);
    if (!strcmp(reduction, "none"))
        return 0;
    if (!strcmp(reduction, "mean"))
        return n ? (double)n : 1;
    return !strcmp(reduction, "batchmean") && x->dim[0] ? (double)x->dim[0] : 1;
}

#endif
#ifdef REAL

static inline REAL FN(loss_of)(REAL target, REAL x)
{
    return target > 0 ? target * (RM(log)(target) - x) : 0;
}

static fl_err FN(kldiv_loss)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL *x = in->data, *target = fl_in(c, "Target")->data;
    REAL *y = fl_out(c, "Loss")->data;
    double sum = 0; /* the sum may have any number of terms */
    const REAL by = (REAL)divisor(fl_attr_str(c, "reduction"), &in->shape);
    for (int64_t i = 0, n = fl_tensor_numel(in); i < n; i++) {
        const REAL loss = FN(loss_of)(target[i], x[i]);
        if (by == 0)
            y[i] = loss;
        sum += loss;
    }
    if (by != 0)
        y[0] = (REAL)(sum / by);
    return FL_OK;
}

static fl_err FN(kldiv_loss_grad)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL *target = fl_in(c, "Target")->data;
    const REAL *dy = fl_in(c, "Loss@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    const REAL by = (REAL)divisor(fl_attr_str(c, "reduction"), &in->shape);
    for (int64_t i = 0, n = fl_tensor_numel(in); i < n; i++) {
        const REAL d = by == 0 ? dy[i] : dy[0] / by;
        dx[i] = target[i] > 0 ? -target[i] * d : 0;
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(kldiv_loss)
FL_REAL_KERNEL(kldiv_loss_grad)

static fl_err infer(fl_infer *x)
{
    static const char *const known[] = {"none", "sum", "mean", "batchmean"};
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const char *reduction = fl_meta_attr(x, "reduction")->s;
    const fl_shape one = {1, {1}};
    int i = 0;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_alike(x, "X", "Target"));
    while (i < 4 && strcmp(reduction, known[i]))
        i++;
    if (i == 4 || in->shape.rank < 1)
        return fl_fail(FL_EINVAL,
                       "%s: reduction is \"%s\", expected \"none\", "
                       "\"sum\", \"mean\" or \"batchmean\"; X has %d "
                       "dims",
                       fl_meta_type(x), reduction, in->shape.rank);
    fl_meta_set(x, "Loss", 0, in->dtype, i ? &one : &in->shape);
    return FL_OK;
}

const fl_op_def fl_op_kldiv_loss = {
    .type = "kldiv_loss",
    .in = {{"X"}, {"Target", FL_NOGRAD}},
    .out = {{"Loss"}},
    .attr = {{"reduction", FL_ATTR_STRING, .s = "mean"}},
    .infer = infer,
    .run = kldiv_loss,
    .grad_in = {"X", "Target", "Loss@GRAD"},
    .grad_run = kldiv_loss_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
