/* SPDX-License-Identifier: Apache-2.0 */
/* sum       Out = X[0] + X[1] + ..., in this order
 * gradient  Out@GRAD to every input: one scale by 1 each
 *
 * Tensors give a tensor, selected rows give selected rows with equal ones
 * added up, and of both together the rows are added into the tensor. Out may be
 * one of the inputs: elements are added a piece at a time, beside Out. */
#define FL_SELF "ops/sum.c"
#include "kernel/rows.h"
#include "op/number.h"
#ifdef NUM

enum {
    FN(PIECE) = 1024 /* elements; they stay in the L1 cache */
};

FL_CLONES static void FN(add)(int64_t n, const NUM *x, NUM *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (NUM)((WRAP)y[i] + (WRAP)x[i]);
}

static void FN(sum_piece)(const fl_call *c, int64_t at, int64_t n, NUM *sum)
{
    bool begun = false;
    for (int i = 0; i < fl_in_count(c, "X"); i++) {
        const fl_value *v = fl_in_value(c, "X", i);
        if (v->kind == FL_SELECTED_ROWS)
            continue;
        const NUM *x = (const NUM *)v->tensor.data + at;
        if (begun)
            FN(add)(n, x, sum);
        else
            memcpy(sum, x, (size_t)n * sizeof *x);
        begun = true;
    }
}

static fl_err FN(add_rows)(int k, const fl_rows *r, NUM *out)
{
    int64_t width = fl_rows_width(r);
    const int64_t *index = fl_rows_index(r);
    const NUM *x = r->value.data;
    for (int64_t i = 0; i < r->n; i++) {
        if (index[i] < 0 || index[i] >= r->height)
            return fl_fail(FL_EINVAL,
                           "sum: X[%d] has row %lld, its height is %lld", k,
                           (long long)index[i], (long long)r->height);
        FN(add)(width, x + i * width, out + index[i] * width);
    }
    return FL_OK;
}

static fl_err FN(sum)(fl_call *c)
{
    fl_value *to = fl_out_value(c, "Out", 0);
    if (to->kind == FL_SELECTED_ROWS)
        return fl_rows_join(c, &to->rows);
    NUM piece[FN(PIECE)], *out = to->tensor.data;
    int64_t n = fl_tensor_numel(&to->tensor);
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < FN(PIECE) ? n - at : FN(PIECE);
        FN(sum_piece)(c, at, m, piece);
        memcpy(out + at, piece, (size_t)m * sizeof *out);
    }
    for (int i = 0; i < fl_in_count(c, "X"); i++) {
        const fl_value *v = fl_in_value(c, "X", i);
        if (v->kind == FL_SELECTED_ROWS)
            FL_TRY(FN(add_rows)(i, &v->rows, out));
    }
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(sum)

/* The first tensor, or the first input if all are selected rows. */
static int main_input(const fl_infer *x)
{
    for (int i = 0; i < fl_meta_count_in(x, "X"); i++)
        if (fl_meta_in(x, "X", i)->kind == FL_LOD_TENSOR)
            return i;
    return 0;
}

static fl_err check_input(const fl_infer *x, int first, int i)
{
    const fl_meta *a = fl_meta_in(x, "X", first), *b = fl_meta_in(x, "X", i);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (b->kind == FL_SELECTED_ROWS && !(FL_REALS & FL_SET(b->dtype)))
        return fl_fail(FL_ESHAPE,
                       "sum: X[%d] is rows of %s, expected f32 or f64", i,
                       fl_dtype_name(b->dtype));
    if (a->dtype == b->dtype && fl_shape_alike(&a->shape, &b->shape))
        return FL_OK;
    return fl_fail(FL_ESHAPE, "sum: X[%d] is %s%s, X[%d] is %s%s", first,
                   fl_dtype_name(a->dtype), fl_shape_text(&a->shape, s), i,
                   fl_dtype_name(b->dtype), fl_shape_text(&b->shape, t));
}

static fl_err infer(fl_infer *x)
{
    for (int i = 0; i < fl_meta_count_in(x, "X"); i++)
        if (!fl_meta_in(x, "X", i))
            return fl_fail(FL_EINVAL, "sum: X[%d] is missing", i);
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS));
    int first = main_input(x);
    for (int i = 0; i < fl_meta_count_in(x, "X"); i++)
        FL_TRY(check_input(x, first, i));
    fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out)
        *out = *fl_meta_in(x, "X", first);
    return FL_OK;
}

static fl_err make_grad(fl_grads *g)
{
    const fl_args *in = fl_desc_in(g->fwd, "X");
    const char *dout = fl_grad_name(g->arena, fl_desc_out1(g->fwd, "Out"));
    for (int i = 0; i < in->n; i++) {
        fl_desc *d = fl_grad_emit(g, "scale");
        fl_desc_set_in1(d, "X", dout);
        fl_desc_set_out1(d, "Out", fl_grad_name(g->arena, in->name[i]));
        fl_desc_set_attr(d, &(fl_attr){"scale", FL_ATTR_FLOAT, .f = 1});
    }
    return FL_OK;
}

const fl_op_def fl_op_sum = {
    .type = "sum",
    .in = {{"X", FL_MANY}},
    .out = {{"Out"}},
    .flags = FL_OP_IN_PLACE | FL_OP_BY_ELEMENT,
    .infer = infer,
    .run = sum,
    .make_grad = make_grad,
};

#endif
