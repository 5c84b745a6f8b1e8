/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_mask  Y[.., j] = j < X[..] ? 1 : 0 for j up to maxlen, or up to the
 *                largest X where that is -1; of out_dtype. MaxLenTensor, one
 *                whole number, stands for maxlen */
#include "kernel/move.h"

#include <string.h>

static int64_t largest(const fl_tensor *x)
{
    int64_t most = 0;
    for (int64_t i = 0, n = fl_tensor_numel(x); i < n; i++)
        if (fl_move_index_at(x, i) > most)
            most = fl_move_index_at(x, i);
    return most;
}

static fl_shape mask_shape(const fl_shape *x, int64_t length)
{
    fl_shape s = *x;
    s.dim[s.rank++] = length;
    return s;
}

static fl_err sequence_mask(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_value *out = fl_out_value(c, "Y", 0);
    const fl_dtype dtype = (fl_dtype)fl_attr_i64(c, "out_dtype");
    const fl_tensor *given = fl_in(c, "MaxLenTensor");
    const int64_t one = 1, maxlen = given ? fl_move_index_at(given, 0)
                                          : fl_attr_i64(c, "maxlen");
    const int64_t length = maxlen < 0 ? largest(x) : maxlen;
    const fl_shape s = mask_shape(&x->shape, length);
    const size_t size = fl_dtype_size(dtype);
    char on[sizeof one];
    FL_TRY(fl_convert(1, FL_I64, &one, dtype, on));
    out->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&out->tensor, dtype, &s));
    char *to = out->tensor.data;
    memset(to, 0, fl_tensor_bytes(&out->tensor));
    for (int64_t i = 0, n = fl_tensor_numel(x); i < n; i++)
        for (int64_t j = 0; j < length; j++, to += size)
            if (j < fl_move_index_at(x, i))
                memcpy(to, on, size);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const int64_t maxlen = fl_meta_attr(x, "maxlen")->i;
    fl_dtype dtype;
    FL_TRY(fl_meta_check(x, "X", FL_INDEXES));
    FL_TRY(fl_move_check_one(x, "MaxLenTensor"));
    FL_TRY(fl_move_dtype(x, "out_dtype", &dtype));
    if (in->shape.rank >= FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: X has %d dimensions, at most %d",
                       fl_meta_type(x), in->shape.rank, FL_MAX_RANK - 1);
    if (fl_meta_running(x))
        return FL_OK; /* the kernel resizes it */
    const bool known = maxlen >= 0 && !fl_meta_in(x, "MaxLenTensor", 0);
    const fl_shape s = mask_shape(&in->shape, known ? maxlen : -1);
    fl_meta_set(x, "Y", 0, dtype, &s);
    return FL_OK;
}

const fl_op_def fl_op_sequence_mask = {
    .type = "sequence_mask",
    .in = {{"X", FL_NOGRAD}, {"MaxLenTensor", FL_OPTIONAL | FL_NOGRAD}},
    .out = {{"Y"}},
    .attr = {{"maxlen", FL_ATTR_INT, .i = -1},
             {"out_dtype", FL_ATTR_INT, .i = FL_I64}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer,
    .run = sequence_mask,
};
