/* SPDX-License-Identifier: Apache-2.0 */
/* where  Out = the indices of all elements of Condition that are true, a row
 *        each, in order: i64 [n, rank of Condition] */
#include "op/op.h"

static int64_t count_true(int64_t n, const bool *x)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found += x[i];
    return found;
}

static fl_err where(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "Condition");
    const bool *is = x->data;
    fl_value *out = fl_out_value(c, "Out", 0);
    const int rank = x->shape.rank;
    const int64_t n = fl_tensor_numel(x);
    const fl_shape s = {2, {count_true(n, is), rank}};
    out->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&out->tensor, FL_I64, &s));
    int64_t *row = out->tensor.data;
    for (int64_t i = 0; i < n; i++) {
        if (!is[i])
            continue;
        for (int64_t d = rank - 1, rest = i; d >= 0; d--) {
            row[d] = rest % x->shape.dim[d];
            rest /= x->shape.dim[d];
        }
        row += rank;
    }
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const int rank = fl_meta_in(x, "Condition", 0)->shape.rank;
    const fl_shape s = {2, {-1, rank}};
    FL_TRY(fl_meta_check(x, "Condition", FL_SET(FL_BOOL)));
    if (rank < 1)
        return fl_fail(FL_ESHAPE, "where: Condition has no dimensions");
    if (!fl_meta_running(x)) /* otherwise the kernel resizes it */
        fl_meta_set(x, "Out", 0, FL_I64, &s);
    return FL_OK;
}

const fl_op_def fl_op_where = {
    .type = "where",
    .in = {{"Condition", FL_NOGRAD}},
    .out = {{"Out"}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer,
    .run = where,
};
