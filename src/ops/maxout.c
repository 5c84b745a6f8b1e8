/* SPDX-License-Identifier: Apache-2.0 */
/* maxout    Out[n, c] = the largest of the channels c * groups up to
 *           (c + 1) * groups of X[n], element by element
 * gradient  Out@GRAD is passed to the first channel that has the largest
 *           element */
#define FL_SELF "ops/maxout.c"
#include "op/real.h"

#include <string.h>

#ifdef REAL

static fl_err FN(maxout)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL *x = in->data;
    REAL *y = fl_out(c, "Out")->data;
    int64_t groups = fl_attr_i64(c, "groups");
    int64_t plane = in->shape.dim[2] * in->shape.dim[3];
    int64_t n = fl_tensor_numel(fl_out(c, "Out"));
    for (int64_t i = 0; i < n; i++) {
        const REAL *at = x + i / plane * groups * plane + i % plane;
        y[i] = at[0];
        for (int64_t g = 1; g < groups; g++)
            y[i] = at[g * plane] > y[i] ? at[g * plane] : y[i];
    }
    return FL_OK;
}

static fl_err FN(maxout_grad)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const REAL *x = in->data, *y = fl_in(c, "Out")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    int64_t groups = fl_attr_i64(c, "groups");
    int64_t plane = in->shape.dim[2] * in->shape.dim[3];
    memset(dx->data, 0, fl_tensor_bytes(dx));
    for (int64_t i = 0, n = fl_numel(c, "Out"); i < n; i++) {
        int64_t at = i / plane * groups * plane + i % plane, g = 0;
        while (g < groups - 1 && x[at + g * plane] != y[i])
            g++;
        ((REAL *)dx->data)[at + g * plane] = dy[i];
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(maxout)
FL_REAL_KERNEL(maxout_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    int64_t groups = fl_meta_attr(x, "groups")->i;
    fl_shape s = in->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (s.rank != 4)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected 4 dims",
                       fl_meta_type(x), fl_shape_text(&s, text));
    if (groups < 2 || (s.dim[1] >= 0 && s.dim[1] % groups))
        return fl_fail(FL_ESHAPE,
                       "%s: X has %lld channels, groups is %lld, expected a "
                       "divisor of 2 or more",
                       fl_meta_type(x), (long long)s.dim[1], (long long)groups);
    if (s.dim[1] >= 0)
        s.dim[1] /= groups;
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    FL_TRY(fl_infer_grad_of_rule(x));
    return fl_meta_alike(x, "Out", "Out@GRAD");
}

const fl_op_def fl_op_maxout = {
    .type = "maxout",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"groups", FL_ATTR_INT, .required = true}},
    .infer = infer,
    .run = maxout,
    .grad_in = {"X", "Out", "Out@GRAD"},
    .grad_run = maxout_grad,
    .grad_infer = infer_grad,
};

#endif
