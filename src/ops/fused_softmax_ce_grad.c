/* SPDX-License-Identifier: Apache-2.0 */
/* fused_softmax_ce_grad - back through cross_entropy2 and softmax over the last
 * dim; the planner makes it.
 *
 *     Softmax [rows.., n], Label i64 [rows.., 1], Y@GRAD [rows.., 1] -> X@GRAD
 *     X@GRAD = (Softmax - onehot(Label)) * Y@GRAD, 0 where Label is
 *     ignore_index
 *
 * Nothing is divided by a probability, so small ones lose nothing. */
#define FL_SELF "ops/fused_softmax_ce_grad.c"
#include "op/real.h"

#ifndef FL_OPS_FUSED_SOFTMAX_CE_GRAD_C
#define FL_OPS_FUSED_SOFTMAX_CE_GRAD_C

#include "kernel/label.h"

#endif
#ifdef REAL

FL_CLONES static void FN(rows)(int64_t rows, int64_t n, int64_t ignore,
                               const REAL *p, const int64_t *label,
                               const REAL *dy, REAL *dx)
{
    for (int64_t r = 0; r < rows; r++, p += n, dx += n) {
        REAL d = label[r] == ignore ? 0 : dy[r];
        FL_APART
        for (int64_t j = 0; j < n; j++)
            dx[j] = p[j] * d;
        if (label[r] != ignore)
            dx[label[r]] -= d;
    }
}

static fl_err FN(fused_softmax_ce_grad)(fl_call *c)
{
    const fl_tensor *p = fl_in(c, "Softmax");
    const int64_t *label = fl_in(c, "Label")->data;
    const REAL *dy = fl_in(c, "Y@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    int64_t n = p->shape.dim[p->shape.rank - 1];
    int64_t ignore = fl_attr_i64(c, "ignore_index");
    FL_TRY(fl_label_check(c, "Label", n, ignore));
    FN(rows)(fl_numel(c, "Label"), n, ignore, p->data, label, dy, dx);
    return FL_OK;
}

#else

FL_REAL_KERNEL(fused_softmax_ce_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Softmax", 0);
    int last = m->shape.rank - 1;
    FL_TRY(fl_meta_check(x, "Softmax", FL_REALS));
    if (last < 1)
        return fl_fail(FL_ESHAPE, "%s: Softmax has %d dims, expected 2 or more",
                       fl_meta_type(x), m->shape.rank);
    fl_shape loss = fl_shape_single(&m->shape, last);
    FL_TRY(fl_meta_expect(x, "Label", FL_I64, &loss));
    FL_TRY(fl_meta_expect(x, "Y@GRAD", m->dtype, &loss));
    fl_meta_set(x, "X@GRAD", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "Softmax", "X@GRAD");
    return FL_OK;
}

const fl_op_def fl_op_fused_softmax_ce_grad = {
    .type = "fused_softmax_ce_grad",
    .in = {{"Softmax"}, {"Label"}, {"Y@GRAD"}},
    .out = {{"X@GRAD"}},
    .attr = {{"ignore_index", FL_ATTR_INT, .i = -100}},
    .flags = FL_OP_HIDDEN,
    .infer = infer,
    .run = fused_softmax_ce_grad,
};

#endif
