/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv  Out[t] = sum over j of X[t + j] * Filter[j], within the sequence,
 *           column by column
 * gradient  X@GRAD[t + j] += Out@GRAD[t] * Filter[j]
 *           Filter@GRAD[j] += Out@GRAD[t] * X[t + j] */
#define FL_SELF "ops/row_conv.c"
#include "op/real.h"

#ifndef FL_OPS_ROW_CONV_C
#define FL_OPS_ROW_CONV_C

#include "kernel/sequence.h"

#include <string.h>

#endif
#ifdef REAL

/* z += x * y, element by element. */
static void FN(add_product)(int64_t n, const REAL *x, const REAL *y, REAL *z)
{
    for (int64_t i = 0; i < n; i++)
        z[i] += x[i] * y[i];
}

static fl_err FN(row_conv)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X"), *filter = fl_in(c, "Filter");
    const fl_sequences of = fl_sequences_of(&in->lod);
    const int64_t width = filter->shape.dim[1], k = filter->shape.dim[0];
    const REAL *x = in->data, *w = filter->data;
    fl_tensor *y = fl_out(c, "Out");
    memset(y->data, 0, fl_tensor_bytes(y));
    for (int64_t s = 0; s < of.n; s++)
        for (int64_t t = of.off[s]; t < of.off[s + 1]; t++)
            for (int64_t j = 0; j < k && t + j < of.off[s + 1]; j++)
                FN(add_product)
    (width, x + (t + j) * width, w + j * width, (REAL *)y->data + t * width);
    return FL_OK;
}

static fl_err FN(row_conv_grad)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X"), *filter = fl_in(c, "Filter");
    const fl_sequences of = fl_sequences_of(&in->lod);
    const int64_t width = filter->shape.dim[1], k = filter->shape.dim[0];
    const REAL *x = in->data, *w = filter->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_cleared(fl_out(c, "X@GRAD"));
    REAL *dw = fl_cleared(fl_out(c, "Filter@GRAD"));
    for (int64_t s = 0; s < of.n; s++)
        for (int64_t t = of.off[s]; t < of.off[s + 1]; t++)
            for (int64_t j = 0; j < k && t + j < of.off[s + 1]; j++) {
                const REAL *d = dy + t * width;
                const int64_t at = (t + j) * width;
                if (dx)
                    FN(add_product)(width, d, w + j * width, dx + at);
                if (dw)
                    FN(add_product)(width, d, x + at, dw + j * width);
            }
    return FL_OK;
}

#else

FL_REAL_KERNEL(row_conv)
FL_REAL_KERNEL(row_conv_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_meta *w = fl_meta_in(x, "Filter", 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_sequence_check(x, "X", 0));
    FL_TRY(fl_meta_check(x, "Filter", FL_REALS));
    if (in->dtype != w->dtype || in->shape.rank != 2 || w->shape.rank != 2 ||
        in->shape.dim[1] != w->shape.dim[1])
        return fl_fail(FL_ESHAPE,
                       "%s: X is %s%s, Filter %s%s, expected [T,N], [k,N]",
                       fl_meta_type(x), fl_dtype_name(in->dtype),
                       fl_shape_text(&in->shape, s), fl_dtype_name(w->dtype),
                       fl_shape_text(&w->shape, t));
    return fl_infer_same(x);
}

const fl_op_def fl_op_row_conv = {
    .type = "row_conv",
    .in = {{"X"}, {"Filter"}},
    .out = {{"Out"}},
    .infer = infer,
    .run = row_conv,
    .grad_in = {"X", "Filter", "Out@GRAD"},
    .grad_run = row_conv_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
