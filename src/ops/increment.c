/* SPDX-License-Identifier: Apache-2.0 */
/* increment  Out = X + step, one element; Out is X itself in most programs.
 *
 * A counter has no gradient. */
#define FL_SELF "ops/increment.c"
#include "op/number.h"
#ifdef NUM

static fl_err FN(increment)(fl_call *c)
{
    const NUM *x = fl_in(c, "X")->data;
    NUM *y = fl_out(c, "Out")->data;
    *y = (NUM)((WRAP)*x + (WRAP)NUM_OF(fl_attr_f32(c, "step")));
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(increment)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    int64_t n = fl_shape_numel(&in->shape);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    if (n != 1 && n != -1)
        return fl_fail(FL_ESHAPE, "increment: X is %s, expected one element",
                       fl_shape_text(&in->shape, text));
    return fl_infer_same(x);
}

const fl_op_def fl_op_increment = {
    .type = "increment",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"step", FL_ATTR_FLOAT, .f = 1}},
    .infer = infer,
    .run = increment,
};

#endif
