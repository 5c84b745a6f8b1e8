/* SPDX-License-Identifier: Apache-2.0 */
/* clip      Out    = X, but no less than min and no more than max
 * gradient  X@GRAD = Out@GRAD where X is between them, else 0
 *
 * X may be selected rows: equal ones are added up before they are clipped. */
#define FL_SELF "ops/clip.c"
#include "kernel/rows.h"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(loop)(int64_t n, REAL min, REAL max, const REAL *x,
                               REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++) {
        REAL v = x[i] < min ? min : x[i];
        y[i] = v > max ? max : v;
    }
}

FL_CLONES static void FN(grad_loop)(int64_t n, REAL min, REAL max,
                                    const REAL *x, const REAL *dy, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > min && x[i] < max ? dy[i] : 0;
}

static fl_err FN(clip)(fl_call *c)
{
    const fl_tensor *x;
    fl_tensor *y;
    FL_TRY(fl_rows_pair_merged(c, &x, &y));
    FN(loop)
    (fl_tensor_numel(x), fl_attr_f32(c, "min"), fl_attr_f32(c, "max"), x->data,
     y->data);
    return FL_OK;
}

static fl_err FN(clip_grad)(fl_call *c)
{
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (dx)
        FN(grad_loop)
    (fl_numel(c, "X"), fl_attr_f32(c, "min"), fl_attr_f32(c, "max"),
     fl_in(c, "X")->data, fl_in(c, "Out@GRAD")->data, dx->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(clip)
FL_REAL_KERNEL(clip_grad)

static fl_err infer(fl_infer *x)
{
    float min = fl_meta_attr(x, "min")->f, max = fl_meta_attr(x, "max")->f;
    FL_TRY(fl_meta_check(x, "X", FL_REALS | FL_OR_ROWS));
    if (!(min <= max))
        return fl_fail(FL_EINVAL,
                       "clip: min is %g, max is %g, expected min <= max", min,
                       max);
    return fl_infer_same(x);
}

const fl_op_def fl_op_clip = {
    .type = "clip",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"min", FL_ATTR_FLOAT, .required = true},
             {"max", FL_ATTR_FLOAT, .required = true}},
    .flags = FL_OP_BY_ELEMENT,
    .infer = infer,
    .run = clip,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = clip_grad,
    .grad_infer = fl_infer_grad_alike,
};

#endif
