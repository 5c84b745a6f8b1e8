/* SPDX-License-Identifier: Apache-2.0 */
/* reverse   Out = X read from the end along each of `axis`
 * gradient  reverse of Out@GRAD */
#include "kernel/move.h"

static fl_err reverse(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const fl_attr *axis = fl_attr_get(c, "axis");
    const size_t size = fl_dtype_size(x->dtype);
    bool back[FL_MAX_RANK] = {0};
    int64_t step[FL_MAX_RANK], first = 0;
    fl_box b = {0};
    for (int i = 0; i < axis->n; i++)
        back[axis->longs[i] + (axis->longs[i] < 0 ? x->shape.rank : 0)] = true;
    fl_box_steps(&x->shape, step);
    for (int i = 0; i < x->shape.rank; i++) {
        fl_box_dim(&b, x->shape.dim[i], step[i], back[i] ? -step[i] : step[i]);
        first += back[i] ? (x->shape.dim[i] - 1) * step[i] : 0;
    }
    if (fl_tensor_bytes(x))
        fl_box_copy(&b, size, fl_out(c, "Out")->data,
                    (const char *)x->data + first * (int64_t)size);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *axis = fl_meta_attr(x, "axis");
    bool rows = false;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (!axis->n)
        return fl_fail(FL_EINVAL, "reverse: axis names no dimension");
    for (int i = 0, at; i < axis->n; i++) {
        FL_TRY(fl_move_axis(x, "X", axis->longs[i], in->shape.rank, &at));
        rows |= !at;
    }
    fl_meta_set(x, "Out", 0, in->dtype, &in->shape);
    if (!rows) /* the rows of a sequence stay the same rows */
        fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err make_grad(fl_grads *g)
{
    fl_desc_set_attr(fl_grad_back(g, "reverse"), fl_desc_attr(g->fwd, "axis"));
    return FL_OK;
}

const fl_op_def fl_op_reverse = {
    .type = "reverse",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INTS, .required = true}},
    .infer = infer,
    .run = reverse,
    .make_grad = make_grad,
};
