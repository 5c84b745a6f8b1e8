/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_softmax   softmax over each sequence of X, which has one column
 * gradient           X@GRAD = (Out@GRAD - sum of Out@GRAD * Out) * Out */
#define FL_SELF "ops/sequence_softmax.c"
#include "op/real.h"

#ifndef FL_OPS_SEQUENCE_SOFTMAX_C
#define FL_OPS_SEQUENCE_SOFTMAX_C

#include "kernel/sequence.h"
#include "kernel/softmax.h"

#endif
#ifdef REAL

static fl_err FN(sequence_softmax)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const REAL *from = x->data;
    REAL *y = fl_out(c, "Out")->data;
    fl_sequences in = fl_sequences_of(&x->lod);
    for (int64_t s = 0; s < in.n; s++) {
        fl_axis at = {1, in.off[s + 1] - in.off[s], 1};
        FN(fl_softmax)(at, from + in.off[s], y + in.off[s]);
    }
    return FL_OK;
}

static fl_err FN(sequence_softmax_grad)(fl_call *c)
{
    const fl_tensor *out = fl_in(c, "Out");
    const REAL *y = out->data, *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    fl_sequences in = fl_sequences_of(&out->lod);
    for (int64_t s = 0; s < in.n; s++) {
        int64_t from = in.off[s], to = in.off[s + 1];
        REAL dot = FN(fl_dot)(to - from, y + from, dy + from);
        for (int64_t i = from; i < to; i++)
            dx[i] = (dy[i] - dot) * y[i];
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(sequence_softmax)
FL_REAL_KERNEL(sequence_softmax_grad)

static fl_err check_column(const fl_infer *x, const char *slot)
{
    const fl_shape *s = &fl_meta_in(x, slot, 0)->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_sequence_check(x, slot, 0));
    for (int i = 1; i < s->rank; i++)
        if (s->dim[i] != 1 && s->dim[i] != -1)
            return fl_fail(FL_ESHAPE, "%s: %s is %s, expected one column",
                           fl_meta_type(x), slot, fl_shape_text(s, text));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    FL_TRY(check_column(x, "X"));
    return fl_infer_real(x);
}

static fl_err infer_grad(fl_infer *x)
{
    FL_TRY(check_column(x, "Out"));
    return fl_infer_grad_alike(x);
}

const fl_op_def fl_op_sequence_softmax = {
    .type = "sequence_softmax",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"use_cudnn", FL_ATTR_BOOL},
             {"data_format", FL_ATTR_STRING, .s = "AnyLayout"}},
    .infer = infer,
    .run = sequence_softmax,
    .grad_in = {"Out", "Out@GRAD"},
    .grad_run = sequence_softmax_grad,
    .grad_infer = infer_grad,
};

#endif
