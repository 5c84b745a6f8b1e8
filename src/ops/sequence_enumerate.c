/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_enumerate  row i of Out = X[i], X[i + 1] ... win_size of them, with
 *                     pad_value beyond the end of the sequence */
#include "kernel/sequence.h"

#include <string.h>

static fl_err sequence_enumerate(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const fl_sequences of = fl_sequences_of(&x->lod);
    const int64_t win = fl_attr_i64(c, "win_size");
    const int64_t pad = fl_attr_i64(c, "pad_value");
    const size_t size = fl_dtype_size(x->dtype);
    char none[sizeof pad], *to = fl_out(c, "Out")->data;
    FL_TRY(fl_convert(1, FL_I64, &pad, x->dtype, none));
    for (int64_t s = 0; s < of.n; s++)
        for (int64_t i = of.off[s]; i < of.off[s + 1]; i++)
            for (int64_t j = i; j < i + win; j++, to += size)
                memcpy(to,
                       j < of.off[s + 1] ? (char *)x->data + (size_t)j * size
                                         : none,
                       size);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const int64_t win = fl_meta_attr(x, "win_size")->i;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_SET(FL_I64) | FL_SET(FL_I32)));
    FL_TRY(fl_sequence_check(x, "X", 0));
    if (in->shape.rank != 2 || in->shape.dim[1] != 1 || win < 1)
        return fl_fail(
            FL_ESHAPE, "%s: X is %s, win_size %lld, expected [n,1], 1 or more",
            fl_meta_type(x), fl_shape_text(&in->shape, text), (long long)win);
    const fl_shape s = {2, {in->shape.dim[0], win}};
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

const fl_op_def fl_op_sequence_enumerate = {
    .type = "sequence_enumerate",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"win_size", FL_ATTR_INT, .required = true},
             {"pad_value", FL_ATTR_INT}},
    .infer = infer,
    .run = sequence_enumerate,
};
