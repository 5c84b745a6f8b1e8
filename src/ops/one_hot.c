/* SPDX-License-Identifier: Apache-2.0 */
/* one_hot   Out[i, X[i]] = 1, else 0; X is [.., 1], Out [.., depth]
 *
 * depth_tensor, one whole number, stands for `depth`. X may be of real numbers
 * that are whole. */
#include "kernel/move.h"

#include <string.h>

static fl_err check_depth(int64_t depth)
{
    if (depth < 1)
        return fl_fail(FL_EINVAL, "one_hot: depth is %lld, expected at least 1",
                       (long long)depth);
    return FL_OK;
}

static fl_err infer_one_hot(fl_infer *x)
{
    fl_shape s = fl_meta_in(x, "X", 0)->shape;
    int64_t depth = fl_meta_attr(x, "depth")->i;
    char text[FL_SHAPE_TEXT];
    fl_dtype dtype;
    const bool given = fl_meta_in(x, "depth_tensor", 0);
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    FL_TRY(fl_move_check_one(x, "depth_tensor"));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
    if (s.rank < 2 || s.dim[s.rank - 1] != 1)
        return fl_fail(FL_ESHAPE, "one_hot: X is %s, expected [.., 1]",
                       fl_shape_text(&s, text));
    if (given && fl_meta_running(x))
        return FL_OK; /* the kernel resizes it */
    if (!given)
        FL_TRY(check_depth(depth));
    s.dim[s.rank - 1] = given ? -1 : depth;
    fl_meta_set(x, "Out", 0, dtype, &s);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err size_by_tensor(fl_call *c, const fl_tensor *x,
                             const fl_tensor *given, int64_t *depth)
{
    fl_value *out = fl_out_value(c, "Out", 0);
    fl_shape s = x->shape;
    *depth = fl_move_index_at(given, 0);
    FL_TRY(check_depth(*depth));
    s.dim[s.rank - 1] = *depth;
    out->kind = FL_LOD_TENSOR;
    FL_TRY(
        fl_tensor_resize(&out->tensor, (fl_dtype)fl_attr_i64(c, "dtype"), &s));
    return fl_lod_ref(&out->tensor.lod, &x->lod);
}

/* The element as an integer; -1 if it has a fraction. */
static int64_t class_at(const fl_tensor *x, int64_t i)
{
    double d;
    if (x->dtype == FL_I32 || x->dtype == FL_I64)
        return fl_move_index_at(x, i);
    d = x->dtype == FL_F64 ? ((double *)x->data)[i]
                           : (double)((float *)x->data)[i];
    return (double)fl_whole(d) == d ? fl_whole(d) : -1;
}

static fl_err one_hot(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *given = fl_in(c, "depth_tensor");
    fl_tensor *y = fl_out(c, "Out");
    int64_t depth = fl_attr_i64(c, "depth"), one = 1;
    if (given)
        FL_TRY(size_by_tensor(c, x, given, &depth));
    size_t size = fl_dtype_size(y->dtype);
    char element[sizeof(double)];
    FL_TRY(fl_convert(1, FL_I64, &one, y->dtype, element));
    memset(y->data, 0, fl_tensor_bytes(y));
    for (int64_t i = 0, n = fl_tensor_numel(x); i < n; i++) {
        int64_t at = class_at(x, i);
        if (at < 0 || at >= depth)
            return fl_fail(FL_EINVAL, "one_hot: X %lld is %lld, depth is %lld",
                           (long long)i, (long long)at, (long long)depth);
        memcpy((char *)y->data + (size_t)(i * depth + at) * size, element,
               size);
    }
    return FL_OK;
}

const fl_op_def fl_op_one_hot = {
    .type = "one_hot",
    .in = {{"X"}, {"depth_tensor", FL_OPTIONAL | FL_SHAPES}},
    .out = {{"Out"}},
    .attr =
        {
            {"depth", FL_ATTR_INT, .i = -1},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
        },
    .infer = infer_one_hot,
    .run = one_hot,
};
