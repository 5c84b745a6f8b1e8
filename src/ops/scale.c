/* SPDX-License-Identifier: Apache-2.0 */
/* scale     Out = scale * X + bias, or scale * (X + bias)
 * gradient  scale of Out@GRAD without the bias
 *
 * X may be selected rows: the rows that are there are scaled. */
#define FL_SELF "ops/scale.c"
#include "kernel/rows.h"
#include "op/number.h"
#ifdef NUM

FL_CLONES static void FN(loop)(int64_t n, NUM a, NUM b, const NUM *x, NUM *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = (NUM)((WRAP)a * (WRAP)x[i] + (WRAP)b);
}

static fl_err FN(scale)(fl_call *c)
{
    const fl_tensor *x;
    fl_tensor *y;
    NUM a = NUM_OF(fl_attr_f32(c, "scale"));
    NUM b = NUM_OF(fl_attr_f32(c, "bias"));
    FL_TRY(fl_rows_pair(c, &x, &y));
    if (!fl_attr_bool(c, "bias_after_scale"))
        b = (NUM)((WRAP)a * (WRAP)b);
    FN(loop)(fl_tensor_numel(x), a, b, x->data, y->data);
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(scale)

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS));
    return fl_infer_same(x);
}

static fl_err make_grad(fl_grads *g)
{
    fl_desc *d = fl_grad_back(g, "scale");
    const fl_attr *scale = fl_desc_attr(g->fwd, "scale");
    if (scale)
        fl_desc_set_attr(d, scale);
    return FL_OK;
}

const fl_op_def fl_op_scale = {
    .type = "scale",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"scale", FL_ATTR_FLOAT, .f = 1},
             {"bias", FL_ATTR_FLOAT},
             {"bias_after_scale", FL_ATTR_BOOL, .b = true}},
    .flags = FL_OP_IN_PLACE | FL_OP_BY_ELEMENT,
    .infer = infer,
    .run = scale,
    .make_grad = make_grad,
};

#endif
