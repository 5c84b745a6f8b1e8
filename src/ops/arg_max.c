/* SPDX-License-Identifier: Apache-2.0 */
/* arg_max, arg_min   Out = the index along axis of the largest (smallest)
 *                    element of X, the first if there are several; Out has the
 *                    shape of X without that dim */
#define FL_SELF "ops/arg_max.c"
#include "op/number.h"

#ifndef FL_OPS_ARG_MAX_C
#define FL_OPS_ARG_MAX_C

#include "kernel/softmax.h"

#endif
#ifdef NUM

static void FN(arg)(fl_axis at, bool max, const NUM *x, int64_t *out)
{
    for (int64_t o = 0; o < at.outer; o++, x += at.size * at.inner)
        for (int64_t i = 0; i < at.inner; i++) {
            int64_t best = 0;
            for (int64_t j = 1; j < at.size; j++) {
                NUM v = x[j * at.inner + i], w = x[best * at.inner + i];
                if (max ? v > w : v < w)
                    best = j;
            }
            *out++ = best;
        }
}

static fl_err FN(pick)(fl_call *c, bool max)
{
    const fl_tensor *x = fl_in(c, "X");
    FN(arg)
    (fl_axis_of(&x->shape, fl_attr_i64(c, "axis")), max, x->data,
     fl_out(c, "Out")->data);
    return FL_OK;
}

static fl_err FN(arg_max)(fl_call *c)
{
    return FN(pick)(c, true);
}

static fl_err FN(arg_min)(fl_call *c)
{
    return FN(pick)(c, false);
}

#else

FL_NUMBER_KERNEL(arg_max)
FL_NUMBER_KERNEL(arg_min)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape s = {0};
    char text[FL_SHAPE_TEXT];
    int dim;
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    FL_TRY(fl_meta_axis(x, "X", &dim));
    if (!in->shape.dim[dim])
        return fl_fail(FL_ESHAPE, "%s: X %s has nothing along axis %d",
                       fl_meta_type(x), fl_shape_text(&in->shape, text), dim);
    for (int i = 0; i < in->shape.rank; i++)
        if (i != dim)
            s.dim[s.rank++] = in->shape.dim[i];
    if (!s.rank) /* the result of a vector has one element */
        s = (fl_shape){1, {1}};
    fl_meta_set(x, "Out", 0, FL_I64, &s);
    return FL_OK;
}

const fl_op_def fl_op_arg_max = {
    .type = "arg_max",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_LONG, .i = -1}},
    .infer = infer,
    .run = arg_max,
};

const fl_op_def fl_op_arg_min = {
    .type = "arg_min",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_LONG, .i = -1}},
    .infer = infer,
    .run = arg_min,
};

#endif
