/* SPDX-License-Identifier: Apache-2.0 */
/* sign      Out = -1, 0 or 1
 * gradient  0 everywhere: scale of Out@GRAD by 0 */
#define FL_SELF "ops/sign.c"
#include "op/number.h"
#ifdef NUM

static fl_err FN(sign)(fl_call *c)
{
    const NUM *x = fl_in(c, "X")->data;
    NUM *y = fl_out(c, "Out")->data;
    for (int64_t i = 0, n = fl_numel(c, "X"); i < n; i++)
        y[i] = (x[i] > 0) - (x[i] < 0);
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(sign)

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    return fl_infer_same(x);
}

static fl_err make_grad(fl_grads *g)
{
    fl_desc *d = fl_grad_back(g, "scale");
    fl_desc_set_attr(d, &(fl_attr){"scale", FL_ATTR_FLOAT});
    return FL_OK;
}

const fl_op_def fl_op_sign = {
    .type = "sign",
    .in = {{"X"}},
    .out = {{"Out"}},
    .flags = FL_OP_BY_ELEMENT,
    .infer = infer,
    .run = sign,
    .make_grad = make_grad,
};

#endif
