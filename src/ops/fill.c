/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors whose elements all have the same value.
 *
 *     fill_constant                  in `shape`
 *     fill_constant_batch_size_like  in `shape`, one dimension of which is
 *                                    Input's; its number of sequences, where
 *                                    that is dimension 0, Input has any and
 *                                    by_rows is not set
 *     fill_zeros_like                0, in the shape of X; dense also where X
 *                                    is selected rows */
#include "kernel/move.h"

#include <string.h>

static fl_err infer_constant(fl_infer *x)
{
    fl_shape s;
    fl_dtype dtype;
    FL_TRY(fl_move_shape(x, "shape", 0, &s));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
    fl_meta_set(x, "Out", 0, dtype, &s);
    return FL_OK;
}

static fl_err infer_batch_size_like(fl_infer *x)
{
    fl_shape s;
    fl_dtype dtype;
    FL_TRY(fl_move_batch_shape(x, &s));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
    fl_meta_set(x, "Out", 0, dtype, &s);
    return FL_OK;
}

static fl_err infer_zeros_like(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY | FL_OR_ROWS));
    fl_meta_set(x, "Out", 0, in->dtype, &in->shape);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

/* Make n copies of one element; each step doubles what is there. */
static void repeat(char *to, const char *element, size_t size, size_t n)
{
    size_t have = size, all = size * n;
    if (!n)
        return;
    memcpy(to, element, size);
    for (; have < all; have *= 2)
        memcpy(to + have, to, have < all - have ? have : all - have);
}

static fl_err constant(fl_call *c)
{
    fl_tensor *y = fl_out_filled(c, "Out");
    float value = fl_attr_f32(c, "value");
    char element[sizeof(double)];
    FL_TRY(fl_convert(1, FL_F32, &value, y->dtype, element));
    repeat(y->data, element, fl_dtype_size(y->dtype),
           (size_t)fl_tensor_numel(y));
    return FL_OK;
}

static fl_err zeros(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    memset(y->data, 0, fl_tensor_bytes(y));
    return FL_OK;
}

const fl_op_def fl_op_fill_constant = {
    .type = "fill_constant",
    .out = {{"Out", FL_FILLS}},
    .attr =
        {
            {"shape", FL_ATTR_LONGS, .required = true},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
            {"value", FL_ATTR_FLOAT, .f = 0},
            {"force_cpu", FL_ATTR_BOOL, .b = false},
        },
    .infer = infer_constant,
    .run = constant,
};

const fl_op_def fl_op_fill_constant_batch_size_like = {
    .type = "fill_constant_batch_size_like",
    .in = {{"Input", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr =
        {
            {"shape", FL_ATTR_INTS, .required = true},
            {"input_dim_idx", FL_ATTR_INT, .i = 0},
            {"output_dim_idx", FL_ATTR_INT, .i = 0},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
            {"value", FL_ATTR_FLOAT, .f = 0},
            {"force_cpu", FL_ATTR_BOOL, .b = false},
            {"by_rows", FL_ATTR_BOOL, .ours = true},
        },
    .infer = infer_batch_size_like,
    .run = constant,
};

const fl_op_def fl_op_fill_zeros_like = {
    .type = "fill_zeros_like",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .infer = infer_zeros_like,
    .run = zeros,
};
