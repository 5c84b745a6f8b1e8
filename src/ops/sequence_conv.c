/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_conv   Out[i] = Filter^T of the rows i + contextStart up to
 *                 i + contextStart + contextLength of X, laid side by side;
 *                 rows beyond the sequence are zeros, or with paddingTrainable
 *                 those of PaddingData: first the rows before a sequence, of
 *                 which the last is next to it, then those after it
 *
 * Filter is [contextLength * width, filters]. The rows are laid out once, in
 * scratch memory, and one product does the rest; the gradient goes back the
 * same way. */
#define FL_SELF "ops/sequence_conv.c"
#include "op/real.h"

#ifndef FL_OPS_SEQUENCE_CONV_C
#define FL_OPS_SEQUENCE_CONV_C

#include "kernel/gemm.h"
#include "kernel/sequence.h"

#include <string.h>

typedef struct context {
    int64_t rows, width, start, length;
    int64_t before; /* rows of PaddingData for places before a sequence */
    bool padded;    /* there is PaddingData */
    fl_sequences in;
} context;

static int64_t rows_before(int64_t start)
{
    return start < 0 ? -start : 0;
}

static int64_t rows_after(int64_t start, int64_t length)
{
    return start + length > 1 ? start + length - 1 : 0;
}

static context context_of(const fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    return (context){
        .rows = x->shape.dim[0],
        .width = x->shape.dim[1],
        .start = fl_attr_i64(c, "contextStart"),
        .length = fl_attr_i64(c, "contextLength"),
        .before = rows_before(fl_attr_i64(c, "contextStart")),
        .padded = fl_attr_bool(c, "paddingTrainable"),
        .in = fl_sequences_of(&x->lod),
    };
}

#endif
#ifdef REAL

/* The address of a row of the context: in x, in the padding (which may be
 * NULL), or NULL. */
static REAL *FN(place_of)(const context *k, int64_t s, int64_t row, REAL *x,
                          REAL *padding)
{
    const int64_t first = k->in.off[s], end = k->in.off[s + 1];
    if (row >= first && row < end)
        return x ? x + row * k->width : NULL;
    row = row < first ? row - first : row - end;
    return padding ? padding + (k->before + row) * k->width : NULL;
}

/* Copy x and the padding to the columns, or add the columns to them. */
static void FN(lay_out)(const context *k, bool back, REAL *x, REAL *padding,
                        REAL *laid)
{
    const size_t bytes = (size_t)k->width * sizeof *x;
    for (int64_t s = 0; bytes && s < k->in.n; s++)
        for (int64_t i = k->in.off[s]; i < k->in.off[s + 1]; i++)
            for (int64_t j = 0; j < k->length; j++, laid += k->width) {
                REAL *at = FN(place_of)(k, s, i + k->start + j, x, padding);
                if (at && back)
                    FN(fl_add)(k->width, laid, at);
                else if (at)
                    memcpy(laid, at, bytes);
                else if (!back)
                    memset(laid, 0, bytes);
            }
}

static REAL *FN(padding_of)(const fl_call *c, const context *k)
{
    return k->padded ? fl_in(c, "PaddingData")->data : NULL;
}

static fl_err FN(sequence_conv)(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "Filter");
    context k = context_of(c);
    int64_t wide = k.length * k.width;
    REAL *laid = fl_scratch(c, k.rows, (size_t)wide * sizeof *laid);
    if (!laid)
        return FL_ENOMEM;
    FN(lay_out)
    (&k, false, fl_in(c, "X")->data, FN(padding_of)(c, &k), laid);
    FN(fl_gemm)
    (false, false, k.rows, w->shape.dim[1], wide, 1, laid, w->data, 0,
     fl_out(c, "Out")->data);
    return FL_OK;
}

static fl_err FN(sequence_conv_grad)(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "Filter"), *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD"), *dw = fl_out(c, "Filter@GRAD");
    fl_tensor *dp = fl_out(c, "PaddingData@GRAD");
    context k = context_of(c);
    int64_t wide = k.length * k.width, filters = w->shape.dim[1];
    REAL *laid = fl_scratch(c, k.rows, (size_t)wide * sizeof *laid);
    if (!laid)
        return FL_ENOMEM;
    if (dw) {
        FN(lay_out)
        (&k, false, fl_in(c, "X")->data, FN(padding_of)(c, &k), laid);
        FN(fl_gemm)
        (true, false, wide, filters, k.rows, 1, laid, dy->data, 0, dw->data);
    }
    REAL *to = fl_cleared(dx), *to_padding = fl_cleared(dp);
    if (dx || dp) {
        FN(fl_gemm)
        (false, true, k.rows, wide, filters, 1, dy->data, w->data, 0, laid);
        FN(lay_out)(&k, true, to, k.padded ? to_padding : NULL, laid);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(sequence_conv)
FL_REAL_KERNEL(sequence_conv_grad)

static fl_err check_attrs(const fl_infer *x)
{
    int64_t length = fl_meta_attr(x, "contextLength")->i;
    int64_t stride = fl_meta_attr(x, "contextStride")->i;
    if (length < 1)
        return fl_fail(FL_EINVAL,
                       "%s: contextLength is %lld, expected 1 or "
                       "more",
                       fl_meta_type(x), (long long)length);
    if (stride != 1)
        return fl_fail(FL_EINVAL, "%s: contextStride is %lld, expected 1",
                       fl_meta_type(x), (long long)stride);
    return FL_OK;
}

static fl_err check_padding(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const int64_t start = fl_meta_attr(x, "contextStart")->i;
    const int64_t length = fl_meta_attr(x, "contextLength")->i;
    const fl_shape want = {
        2, {rows_before(start) + rows_after(start, length), in->shape.dim[1]}};
    if (!fl_meta_attr(x, "paddingTrainable")->b)
        return FL_OK;
    if (!fl_meta_in(x, "PaddingData", 0))
        return fl_fail(FL_EINVAL,
                       "%s: paddingTrainable is set, but PaddingData is "
                       "missing",
                       fl_meta_type(x));
    return fl_meta_expect(x, "PaddingData", in->dtype, &want);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_meta *w = fl_meta_in(x, "Filter", 0);
    char s[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(check_attrs(x));
    FL_TRY(fl_sequence_check(x, "X", 0));
    if (in->shape.rank != 2 || w->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, Filter %d, expected 2",
                       fl_meta_type(x), in->shape.rank, w->shape.rank);
    FL_TRY(check_padding(x));
    int64_t width = in->shape.dim[1];
    fl_shape want = {2,
                     {fl_dim_mul(width, fl_meta_attr(x, "contextLength")->i),
                      w->shape.dim[1]}};
    FL_TRY(fl_meta_expect(x, "Filter", in->dtype, &want));
    if (w->shape.dim[1] < 1)
        return fl_fail(FL_ESHAPE,
                       "%s: Filter is %s, expected one column or more",
                       fl_meta_type(x), fl_shape_text(&w->shape, s));
    fl_shape out = {2, {in->shape.dim[0], w->shape.dim[1]}};
    fl_meta_set(x, "Out", 0, in->dtype, &out);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

const fl_op_def fl_op_sequence_conv = {
    .type = "sequence_conv",
    .in = {{"X"}, {"PaddingData", FL_OPTIONAL}, {"Filter"}},
    .out = {{"Out"}},
    .attr = {{"paddingTrainable", FL_ATTR_BOOL},
             {"contextLength", FL_ATTR_INT, .required = true},
             {"contextStart", FL_ATTR_INT},
             {"contextStride", FL_ATTR_INT, .i = 1}},
    .infer = infer,
    .run = sequence_conv,
    .grad_in = {"X", "PaddingData", "Filter", "Out@GRAD"},
    .grad_run = sequence_conv_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
