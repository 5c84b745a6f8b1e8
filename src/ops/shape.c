/* SPDX-License-Identifier: Apache-2.0 */
/* shape     Out = the dimensions of Input, an i32 vector
 * size      Out = how many elements Input has, i64 [1] */
#include "op/op.h"

static fl_err infer_shape(fl_infer *x)
{
    fl_shape s = {1, {fl_meta_in(x, "Input", 0)->shape.rank}};
    FL_TRY(fl_meta_check(x, "Input", FL_ANY));
    fl_meta_set(x, "Out", 0, FL_I32, &s);
    return FL_OK;
}

static fl_err shape(fl_call *c)
{
    const fl_shape *s = &fl_in(c, "Input")->shape;
    int32_t *y = fl_out(c, "Out")->data;
    for (int i = 0; i < s->rank; i++)
        y[i] = (int32_t)s->dim[i];
    return FL_OK;
}

const fl_op_def fl_op_shape = {
    .type = "shape",
    .in = {{"Input", FL_NOGRAD}},
    .out = {{"Out"}},
    .infer = infer_shape,
    .run = shape,
};

static fl_err infer_size(fl_infer *x)
{
    const fl_shape one = {1, {1}};
    FL_TRY(fl_meta_check(x, "Input", FL_ANY));
    fl_meta_set(x, "Out", 0, FL_I64, &one);
    return FL_OK;
}

static fl_err size(fl_call *c)
{
    *(int64_t *)fl_out(c, "Out")->data = fl_numel(c, "Input");
    return FL_OK;
}

const fl_op_def fl_op_size = {
    .type = "size",
    .in = {{"Input", FL_NOGRAD}},
    .out = {{"Out"}},
    .infer = infer_size,
    .run = size,
};
