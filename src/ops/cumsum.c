/* SPDX-License-Identifier: Apache-2.0 */
/* cumsum    Out = the sum of X up to each element along `axis`; `exclusive`:
 *           without the element itself; `reverse`: from the end
 * gradient  cumsum of Out@GRAD the other way round */
#define FL_SELF "ops/cumsum.c"
#include "kernel/softmax.h"
#include "op/number.h"
#ifdef NUM

enum {
    FN(LINES) = 16
};

/* Sum up to LINES adjacent lines at once. An element is read before it is
 * written, because Out may be X. */
FL_CLONES static void FN(lines)(int64_t n, int64_t size, int64_t step,
                                bool exclusive, const NUM *x, NUM *y)
{
    NUM sum[FN(LINES)] = {0};
    for (int64_t j = 0, at = step < 0 ? -step * (size - 1) : 0; j < size;
         j++, at += step) {
        FL_APART
        for (int64_t i = 0; i < n; i++) {
            NUM before = sum[i];
            sum[i] = (NUM)((WRAP)before + (WRAP)x[at + i]);
            y[at + i] = exclusive ? before : sum[i];
        }
    }
}

static fl_err FN(cumsum)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const NUM *x = in->data;
    NUM *y = fl_out(c, "Out")->data;
    const fl_axis at = fl_axis_of(&in->shape, fl_attr_i64(c, "axis"));
    const bool exclusive = fl_attr_bool(c, "exclusive");
    const int64_t step = fl_attr_bool(c, "reverse") ? -at.inner : at.inner;
    const int64_t outer = fl_tensor_numel(in) ? at.outer : 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < at.inner; i += FN(LINES)) {
            int64_t from = o * at.size * at.inner + i, n = at.inner - i;
            n = n < FN(LINES) ? n : FN(LINES);
            FN(lines)(n, at.size, step, exclusive, x + from, y + from);
        }
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(cumsum)

static fl_err infer(fl_infer *x)
{
    int dim;
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    FL_TRY(fl_meta_axis(x, "X", &dim));
    return fl_infer_same(x);
}

static fl_err make_grad(fl_grads *g)
{
    fl_desc *d = fl_grad_back(g, "cumsum");
    const fl_attr *axis = fl_desc_attr(g->fwd, "axis");
    const fl_attr *exclusive = fl_desc_attr(g->fwd, "exclusive");
    const fl_attr *reverse = fl_desc_attr(g->fwd, "reverse");
    if (axis)
        fl_desc_set_attr(d, axis);
    if (exclusive)
        fl_desc_set_attr(d, exclusive);
    fl_desc_set_attr(
        d, &(fl_attr){"reverse", FL_ATTR_BOOL, .b = !(reverse && reverse->b)});
    return FL_OK;
}

const fl_op_def fl_op_cumsum = {
    .type = "cumsum",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .i = -1},
             {"exclusive", FL_ATTR_BOOL},
             {"reverse", FL_ATTR_BOOL}},
    .infer = infer,
    .run = cumsum,
    .make_grad = make_grad,
};

#endif
