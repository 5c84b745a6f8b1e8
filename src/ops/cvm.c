/* SPDX-License-Identifier: Apache-2.0 */
/* cvm       shows and clicks, the first two columns of X [N,D], as logarithms:
 *           use_cvm    Y = log(show + 1), log(click + 1) - log(show + 1), rest
 *           otherwise  Y = the rest
 * gradient  X@GRAD = the two columns of CVM, then the gradient of the rest: the
 *           counts are statistics, which an update adds up, and not trained */
#define FL_SELF "ops/cvm.c"
#include "op/real.h"
#ifdef REAL

static fl_err FN(cvm)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const int64_t width = in->shape.dim[1], rest = width - 2;
    const bool use = fl_attr_bool(c, "use_cvm");
    const REAL *x = in->data;
    REAL *y = fl_out(c, "Y")->data;
    for (int64_t i = 0; i < in->shape.dim[0]; i++, x += width) {
        if (use) {
            const REAL show = RM(log)(x[0] + 1);
            y[1] = RM(log)(x[1] + 1) - show;
            y[0] = show;
            y += 2;
        }
        for (int64_t j = 0; j < rest; j++)
            *y++ = x[2 + j];
    }
    return FL_OK;
}

static fl_err FN(cvm_grad)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const int64_t width = in->shape.dim[1];
    const REAL *cvm = fl_in(c, "CVM")->data, *dy = fl_in(c, "Y@GRAD")->data;
    const int64_t skip = fl_attr_bool(c, "use_cvm") ? 2 : 0;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    for (int64_t i = 0; i < in->shape.dim[0]; i++) {
        *dx++ = cvm[2 * i];
        *dx++ = cvm[2 * i + 1];
        dy += skip;
        for (int64_t j = 2; j < width; j++)
            *dx++ = *dy++;
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(cvm)
FL_REAL_KERNEL(cvm_grad)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (in->shape.rank != 2 || in->shape.dim[1] < 2)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected [N,D], D of 2 or more",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    const fl_shape two = {2, {in->shape.dim[0], 2}};
    FL_TRY(fl_meta_expect(x, "CVM", in->dtype, &two));
    fl_shape s = in->shape;
    s.dim[1] -= fl_meta_attr(x, "use_cvm")->b ? 0 : 2;
    fl_meta_set(x, "Y", 0, in->dtype, &s);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

const fl_op_def fl_op_cvm = {
    .type = "cvm",
    .in = {{"X"}, {"CVM", FL_NOGRAD}},
    .out = {{"Y"}},
    .attr = {{"use_cvm", FL_ATTR_BOOL, .b = true}},
    .infer = infer,
    .run = cvm,
    .grad_in = {"X", "CVM", "Y@GRAD"},
    .grad_run = cvm_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
