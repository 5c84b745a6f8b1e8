/* SPDX-License-Identifier: Apache-2.0 */
/* im2sequence  windows of images as rows: each image of X [N,C,H,W] becomes a
 *              sequence of oh * ow rows, one for each position of a window of
 *              `kernels`, with its C * kh * kw elements; `paddings` {up, left,
 *              down, right} are zeros
 * gradient     X@GRAD = the sum of Out@GRAD over all copies of an element */
#define FL_SELF "ops/im2sequence.c"
#include "op/real.h"

#ifndef FL_OPS_IM2SEQUENCE_C
#define FL_OPS_IM2SEQUENCE_C

#include "kernel/sequence.h"

typedef struct windows {
    int64_t n, c, h, w;     /* X */
    int64_t kh, kw, oh, ow; /* size of the window, number of positions */
    int64_t down, right, up,
        left; /* strides, number of zeros before the image */
} windows;

static windows windows_of(const fl_shape *x, const fl_attr *kernels,
                          const fl_attr *strides, const fl_attr *paddings)
{
    const int64_t *k = kernels->longs, *s = strides->longs;
    const int64_t *p = paddings->longs, h = x->dim[2], w = x->dim[3];
    const int64_t high = fl_dim_add(h, p[0] + p[2]) - k[0];
    const int64_t wide = fl_dim_add(w, p[1] + p[3]) - k[1];
    return (windows){x->dim[0],
                     x->dim[1],
                     h,
                     w,
                     k[0],
                     k[1],
                     high < 0 ? 0 : high / s[0] + 1,
                     wide < 0 ? 0 : wide / s[1] + 1,
                     s[0],
                     s[1],
                     p[0],
                     p[1]};
}

static windows windows_in(const fl_call *c)
{
    return windows_of(&fl_in(c, "X")->shape, fl_attr_get(c, "kernels"),
                      fl_attr_get(c, "strides"), fl_attr_get(c, "paddings"));
}

#endif
#ifdef REAL

/* Copy one window from the image to a row, or add a row to it. */
static void FN(window)(const windows *g, int64_t i, int64_t j, bool back,
                       REAL *x, REAL *row)
{
    for (int64_t c = 0; c < g->c; c++, x += g->h * g->w)
        for (int64_t a = 0; a < g->kh; a++)
            for (int64_t b = 0; b < g->kw; b++, row++) {
                const int64_t r = i * g->down - g->up + a;
                const int64_t s = j * g->right - g->left + b;
                const bool in = r >= 0 && r < g->h && s >= 0 && s < g->w;
                if (!back)
                    *row = in ? x[r * g->w + s] : 0;
                else if (in)
                    x[r * g->w + s] += *row;
            }
}

static void FN(walk)(windows g, bool back, REAL *x, REAL *y)
{
    for (int64_t n = 0; n < g.n; n++, x += g.c * g.h * g.w)
        for (int64_t i = 0; i < g.oh; i++)
            for (int64_t j = 0; j < g.ow; j++, y += g.c * g.kh * g.kw)
                FN(window)(&g, i, j, back, x, y);
}

static fl_err FN(fill)(fl_call *c)
{
    FN(walk)(windows_in(c), false, fl_in(c, "X")->data, fl_out(c, "Out")->data);
    return FL_OK;
}

static fl_err FN(im2sequence_grad)(fl_call *c)
{
    FN(walk)
    (windows_in(c), true, fl_cleared(fl_out(c, "X@GRAD")),
     fl_in(c, "Out@GRAD")->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(fill)
FL_REAL_KERNEL(im2sequence_grad)

static fl_err im2sequence(fl_call *c)
{
    const windows g = windows_in(c);
    int64_t *off = fl_scratch(c, g.n + 1, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    for (int64_t i = 0; i <= g.n; i++)
        off[i] = i * g.oh * g.ow;
    const fl_lod lod = fl_sequence_lod(g.n + 1, off);
    FL_TRY(fl_lod_copy(&fl_out(c, "Out")->lod, &lod));
    return fill(c);
}

static fl_err check_list(const fl_infer *x, const char *name, int n,
                         int64_t least)
{
    const fl_attr *a = fl_meta_attr(x, name);
    bool fits = a->n == n;
    for (int i = 0; fits && i < n; i++)
        fits = a->longs[i] >= least;
    if (!fits)
        return fl_fail(FL_EINVAL, "%s: %s must be %d numbers of %lld or more",
                       fl_meta_type(x), name, n, (long long)least);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(check_list(x, "kernels", 2, 1));
    FL_TRY(check_list(x, "strides", 2, 1));
    FL_TRY(check_list(x, "paddings", 4, 0));
    if (in->shape.rank != 4)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected [N,C,H,W]",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    const windows g =
        windows_of(&in->shape, fl_meta_attr(x, "kernels"),
                   fl_meta_attr(x, "strides"), fl_meta_attr(x, "paddings"));
    const bool known = fl_shape_numel(&in->shape) >= 0;
    if (known && (!g.oh || !g.ow))
        return fl_fail(FL_ESHAPE, "%s: X %s is smaller than the window",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    const int64_t rows = fl_dim_mul(g.n, fl_dim_mul(g.oh, g.ow));
    const fl_shape s = {
        2, {known ? rows : -1, fl_dim_mul(g.c, fl_dim_mul(g.kh, g.kw))}};
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (out)
        out->lod_level = 1; /* the kernel sets the LoD */
    return FL_OK;
}

const fl_op_def fl_op_im2sequence = {
    .type = "im2sequence",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"kernels", FL_ATTR_INTS, .required = true},
             {"strides", FL_ATTR_INTS, .n = 2,
              .longs = (const int64_t[]){1, 1}},
             {"paddings", FL_ATTR_INTS, .n = 4,
              .longs = (const int64_t[]){0, 0, 0, 0}}},
    .infer = infer,
    .run = im2sequence,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = im2sequence_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
