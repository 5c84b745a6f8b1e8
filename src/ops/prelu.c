/* SPDX-License-Identifier: Apache-2.0 */
/* prelu     Out = X > 0 ? X : Alpha * X
 * gradient  X@GRAD = X > 0 ? Out@GRAD : Alpha * Out@GRAD
 *           Alpha@GRAD = sum of Out@GRAD * X where X <= 0
 *
 * Alpha has one element (mode "all"), one for each channel ("channel"), or one
 * for each element of a sample ("element"). */
#define FL_SELF "ops/prelu.c"
#include "op/real.h"

#ifndef FL_OPS_PRELU_C
#define FL_OPS_PRELU_C

#include <string.h>

/* Element i of X has Alpha's element i / plane % n. */
typedef struct slopes {
    int64_t n, plane;
} slopes;

/* n is -1 if it is not known yet, and 0 for an unknown mode. */
static slopes slopes_of(const fl_shape *x, const char *mode)
{
    fl_shape sample = fl_shape_of(x->rank - 1, x->dim + 1);
    if (!strcmp(mode, "all"))
        return (slopes){1, 1};
    if (!strcmp(mode, "channel") && x->rank > 1)
        return (slopes){x->dim[1], fl_shape_span(x, 2, x->rank)};
    if (!strcmp(mode, "element"))
        return (slopes){fl_shape_numel(&sample), 1};
    return (slopes){0, 1};
}

#endif
#ifdef REAL

static fl_err FN(prelu)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL *x = in->data, *alpha = fl_in(c, "Alpha")->data;
    REAL *y = fl_out(c, "Out")->data;
    slopes at = slopes_of(&in->shape, fl_attr_str(c, "mode"));
    for (int64_t i = 0, n = fl_tensor_numel(in); i < n; i++)
        y[i] = x[i] > 0 ? x[i] : alpha[i / at.plane % at.n] * x[i];
    return FL_OK;
}

static fl_err FN(prelu_grad)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL *x = in->data, *alpha = fl_in(c, "Alpha")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *by_x = fl_out(c, "X@GRAD"), *by_alpha = fl_out(c, "Alpha@GRAD");
    REAL *dx = by_x ? by_x->data : NULL;
    slopes at = slopes_of(&in->shape, fl_attr_str(c, "mode"));
    double *da = by_alpha ? fl_scratch(c, at.n, sizeof *da) : NULL;
    if (by_alpha && !da)
        return FL_ENOMEM;
    if (da)
        memset(da, 0, (size_t)at.n * sizeof *da);
    for (int64_t i = 0, n = fl_tensor_numel(in); i < n; i++) {
        int64_t k = i / at.plane % at.n;
        REAL d = dy[i], v = x[i]; /* dx may be dy */
        if (dx)
            dx[i] = v > 0 ? d : alpha[k] * d;
        if (da && !(v > 0))
            da[k] += d * v;
    }
    for (int64_t k = 0; da && k < at.n; k++)
        ((REAL *)by_alpha->data)[k] = (REAL)da[k];
    return FL_OK;
}

#else

FL_REAL_KERNEL(prelu)
FL_REAL_KERNEL(prelu_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0), *a = fl_meta_in(x, "Alpha", 0);
    const char *mode = fl_meta_attr(x, "mode")->s;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_check(x, "Alpha", FL_SET(in->dtype)));
    if (in->shape.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: X has no dims", fl_meta_type(x));
    int64_t want = slopes_of(&in->shape, mode ? mode : "").n;
    int64_t have = fl_shape_numel(&a->shape);
    if (!want)
        return fl_fail(FL_EINVAL,
                       "%s: mode is \"%s\", expected all, channel or element",
                       fl_meta_type(x), mode ? mode : "");
    if (want != have && want != -1 && have != -1)
        return fl_fail(FL_ESHAPE, "%s: Alpha has %lld elements, expected %lld",
                       fl_meta_type(x), (long long)have, (long long)want);
    return fl_infer_same(x);
}

const fl_op_def fl_op_prelu = {
    .type = "prelu",
    .in = {{"X"}, {"Alpha"}},
    .out = {{"Out"}},
    .attr = {{"mode", FL_ATTR_STRING, .s = "all"}},
    .infer = infer,
    .run = prelu,
    .grad_in = {"X", "Alpha", "Out@GRAD"},
    .grad_run = prelu_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
