/* SPDX-License-Identifier: Apache-2.0 */
/* lod_reset  Out = X with other sequences: those of Y's LoD, or where Y has
 *            none, Y's elements as offsets, or the offsets target_lod
 * gradient   X@GRAD = Out@GRAD with the sequences of X */
#include "kernel/move.h"
#include "kernel/sequence.h"

#include <string.h>

static fl_err reset(fl_call *c, const fl_tensor *x, fl_tensor *out, int64_t n,
                    const int64_t *off)
{
    fl_lod lod = fl_sequence_lod(n, off);
    FL_TRY(fl_lod_check(&lod, x->shape.dim[0]));
    return fl_lod_copy(&out->lod, &lod);
}

static fl_err lod_reset(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Y");
    const fl_attr *target = fl_attr_get(c, "target_lod");
    fl_tensor *out = fl_out(c, "Out");
    FL_TRY(fl_view(c, "X", "Out"));
    if (!y)
        return reset(c, x, out, target->n, target->longs);
    if (y->lod.levels || (y->dtype != FL_I64 && y->dtype != FL_I32)) {
        FL_TRY(fl_lod_check(&y->lod, x->shape.dim[0]));
        return fl_lod_ref(&out->lod, &y->lod);
    }
    int64_t n = fl_tensor_numel(y);
    int64_t *off = fl_scratch(c, n, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        off[i] = fl_move_index_at(y, i);
    return reset(c, x, out, n, off);
}

static fl_err lod_reset_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    if (fl_tensor_bytes(dy))
        memcpy(fl_out(c, "X@GRAD")->data, dy->data, fl_tensor_bytes(dy));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0), *y = fl_meta_in(x, "Y", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (in->shape.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: X [] has no rows", fl_meta_type(x));
    if (!y && !fl_meta_attr(x, "target_lod")->n)
        return fl_fail(FL_EINVAL, "%s: neither Y nor target_lod is given",
                       fl_meta_type(x));
    if (y && !y->lod_level)
        FL_TRY(fl_meta_check(x, "Y", FL_INDEXES));
    fl_meta_set(x, "Out", 0, in->dtype, &in->shape);
    if (out) /* the kernel sets the LoD */
        out->lod_level = y && y->lod_level ? y->lod_level : 1;
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "X@GRAD", 0);
    FL_TRY(fl_meta_alike(x, "X", "Out@GRAD"));
    if (out)
        *out = *in;
    return FL_OK;
}

const fl_op_def fl_op_lod_reset = {
    .type = "lod_reset",
    .in = {{"X"}, {"Y", FL_OPTIONAL | FL_NOGRAD}},
    .out = {{"Out", FL_VIEW}},
    .attr = {{"target_lod", FL_ATTR_INTS}},
    .infer = infer,
    .run = lod_reset,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = lod_reset_grad,
    .grad_infer = infer_grad,
};
