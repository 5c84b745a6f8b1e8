/* SPDX-License-Identifier: Apache-2.0 */
/* assign    Out = X: a tensor, selected rows or an array of tensors
 * gradient  X@GRAD = Out@GRAD, by another assign */
#include "op/op.h"

#include <string.h>

static fl_err infer_assign(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    if (in && out)
        *out = *in;
    return FL_OK;
}

static fl_err assign(fl_call *c)
{
    const fl_value *x = fl_in_value(c, "X", 0);
    fl_value *y = fl_out_value(c, "Out", 0);
    if (!x || !y || x == y)
        return FL_OK;
    if (x->kind != FL_LOD_TENSOR)
        return fl_value_copy(y, x);
    memcpy(y->tensor.data, x->tensor.data, fl_tensor_bytes(&x->tensor));
    return FL_OK;
}

static fl_err assign_grad(fl_grads *g)
{
    const char *x = fl_desc_in1(g->fwd, "X");
    if (!x)
        return FL_OK;
    fl_desc *d = fl_grad_emit(g, "assign");
    fl_desc_set_in1(d, "X",
                    fl_grad_name(g->arena, fl_desc_out1(g->fwd, "Out")));
    fl_desc_set_out1(d, "Out", fl_grad_name(g->arena, x));
    return FL_OK;
}

const fl_op_def fl_op_assign = {
    .type = "assign",
    .in = {{"X", FL_OPTIONAL}},
    .out = {{"Out"}},
    .flags = FL_OP_BY_ELEMENT,
    .infer = infer_assign,
    .run = assign,
    .make_grad = assign_grad,
};
