/* SPDX-License-Identifier: Apache-2.0 */
/* cast      Out = X as elements of type out_dtype
 * gradient  Out@GRAD cast back to in_dtype */
#include "op/op.h"

static fl_err cast(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    return fl_convert(fl_tensor_numel(x), x->dtype, x->data, y->dtype, y->data);
}

static fl_err infer(fl_infer *x)
{
    int64_t to = fl_meta_attr(x, "out_dtype")->i;
    const fl_meta *in = fl_meta_in(x, "X", 0);
    if (in->kind != FL_LOD_TENSOR)
        return fl_fail(FL_ESHAPE, "cast: X is %s, expected a tensor",
                       fl_kind_name(in->kind));
    if (to < 0 || !fl_dtype_valid((int)to))
        return fl_fail(FL_EINVAL, "cast: out_dtype %lld is not an element type",
                       (long long)to);
    FL_TRY(fl_infer_same(x));
    fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out)
        out->dtype = (fl_dtype)to;
    return FL_OK;
}

static void swap_attr(fl_desc *d, const char *name, const fl_attr *value)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_INT, .i = value->i});
}

static fl_err make_grad(fl_grads *g)
{
    fl_desc *d = fl_grad_back(g, "cast");
    swap_attr(d, "in_dtype", fl_desc_attr(g->fwd, "out_dtype"));
    swap_attr(d, "out_dtype", fl_desc_attr(g->fwd, "in_dtype"));
    return FL_OK;
}

const fl_op_def fl_op_cast = {
    .type = "cast",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"in_dtype", FL_ATTR_INT, .required = true},
             {"out_dtype", FL_ATTR_INT, .required = true}},
    .flags = FL_OP_BY_ELEMENT,
    .infer = infer,
    .run = cast,
    .make_grad = make_grad,
};
