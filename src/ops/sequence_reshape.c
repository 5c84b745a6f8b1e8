/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_reshape  rows of new_dim elements; each sequence keeps its elements
 * gradient          X@GRAD = Out@GRAD in the shape of X */
#include "kernel/sequence.h"

#include <string.h>

static fl_err sequence_reshape(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    int64_t width = x->shape.dim[1], wide = fl_attr_i64(c, "new_dim");
    fl_sequences in = fl_sequences_of(&x->lod);
    int64_t *off = fl_scratch(c, in.n + 1, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    for (int64_t s = 0; s <= in.n; s++) {
        off[s] = in.off[s] * width / wide;
        if (off[s] * wide != in.off[s] * width)
            return fl_fail(FL_ESHAPE,
                           "sequence_reshape: sequence %lld has %lld elements, "
                           "expected a multiple of new_dim, which is %lld",
                           (long long)s - 1,
                           (long long)((in.off[s] - in.off[s - 1]) * width),
                           (long long)wide);
    }
    if (fl_tensor_bytes(x))
        memcpy(y->data, x->data, fl_tensor_bytes(x));
    fl_lod lod = fl_sequence_lod(in.n + 1, off);
    return fl_lod_copy(&y->lod, &lod);
}

static fl_err sequence_reshape_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    if (fl_tensor_bytes(dy))
        memcpy(fl_out(c, "X@GRAD")->data, dy->data, fl_tensor_bytes(dy));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    int64_t wide = fl_meta_attr(x, "new_dim")->i;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_sequence_check(x, "X", 0));
    if (in->shape.rank != 2 || wide < 1)
        return fl_fail(FL_ESHAPE,
                       "%s: X has %d dims, expected 2; new_dim is %lld",
                       fl_meta_type(x), in->shape.rank, (long long)wide);
    int64_t n = fl_shape_numel(&in->shape);
    if (n >= 0 && n % wide)
        return fl_fail(
            FL_ESHAPE,
            "%s: X has %lld elements, new_dim is %lld, expected a divisor",
            fl_meta_type(x), (long long)n, (long long)wide);
    fl_shape s = {2, {n < 0 ? -1 : n / wide, wide}};
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (out)
        out->lod_level = 1; /* the kernel sets the LoD */
    return FL_OK;
}

const fl_op_def fl_op_sequence_reshape = {
    .type = "sequence_reshape",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"new_dim", FL_ATTR_INT, .required = true}},
    .infer = infer,
    .run = sequence_reshape,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = sequence_reshape_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
