/* SPDX-License-Identifier: Apache-2.0 */
/* clip_by_norm  Out = X * max_norm / norm where norm = sqrt(sum of X^2) is
 *               larger than max_norm, else X
 *
 * X may be selected rows: equal ones are added up before they are measured. */
#define FL_SELF "ops/clip_by_norm.c"
#include "kernel/rows.h"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(loop)(int64_t n, REAL a, const REAL *x, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i];
}

static fl_err FN(clip_by_norm)(fl_call *c)
{
    const fl_tensor *x;
    fl_tensor *y;
    REAL most = fl_attr_f32(c, "max_norm");
    FL_TRY(fl_rows_pair_merged(c, &x, &y));
    int64_t n = fl_tensor_numel(x);
    REAL norm = RM(sqrt)(FN(fl_dot)(n, x->data, x->data));
    FN(loop)(n, norm > most ? most / norm : 1, x->data, y->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(clip_by_norm)

static fl_err infer(fl_infer *x)
{
    float most = fl_meta_attr(x, "max_norm")->f;
    FL_TRY(fl_meta_check(x, "X", FL_REALS | FL_OR_ROWS));
    if (!(most > 0))
        return fl_fail(FL_EINVAL,
                       "clip_by_norm: max_norm is %g, expected more "
                       "than 0",
                       most);
    return fl_infer_same(x);
}

const fl_op_def fl_op_clip_by_norm = {
    .type = "clip_by_norm",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"max_norm", FL_ATTR_FLOAT, .required = true}},
    .infer = infer,
    .run = clip_by_norm,
};

#endif
