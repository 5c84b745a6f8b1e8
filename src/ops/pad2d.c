/* SPDX-License-Identifier: Apache-2.0 */
/* pad2d     Out = X with paddings {top, bottom, left, right}. The new elements
 *           are pad_value, or with `mode` "reflect" those of the mirrored
 *           image (without its edge), or with "edge" those of the edge
 * gradient  X@GRAD = the sum of Out@GRAD over all copies of an element */
#define FL_SELF "ops/pad2d.c"
#include "op/real.h"

#ifndef FL_OPS_PAD2D_C
#define FL_OPS_PAD2D_C

typedef enum mode {
    CONSTANT,
    REFLECT,
    EDGE,
    MODES,
} mode;

static mode mode_of(const char *name)
{
    static const char *const names[] = {"constant", "reflect", "edge"};
    int m = 0;
    while (m < MODES && strcmp(names[m], name))
        m++;
    return (mode)m;
}

/* The index in X for index i of Out; -1: outside X. */
static int64_t source(mode m, int64_t i, int64_t before, int64_t n)
{
    i -= before;
    if (i >= 0 && i < n)
        return i;
    if (m == CONSTANT)
        return -1;
    if (m == EDGE)
        return i < 0 ? 0 : n - 1;
    return i < 0 ? -i : 2 * n - 2 - i;
}

/* X as [outer, h, w, inner], and the padding. */
typedef struct frame {
    mode mode;
    int64_t outer, h, w, inner, oh, ow, top, left;
} frame;

static bool is_nhwc(const char *format)
{
    return !strcmp(format, "NHWC");
}

static frame frame_of(const fl_call *c, const fl_shape *x, const fl_shape *y)
{
    const int64_t *pad = fl_attr_get(c, "paddings")->longs;
    const int at = is_nhwc(fl_attr_str(c, "data_format")) ? 1 : 2;
    return (frame){
        .mode = mode_of(fl_attr_str(c, "mode")),
        .outer = fl_shape_span(x, 0, at),
        .h = x->dim[at],
        .w = x->dim[at + 1],
        .inner = fl_shape_span(x, at + 2, 4),
        .oh = y->dim[at],
        .ow = y->dim[at + 1],
        .top = pad[0],
        .left = pad[2],
    };
}

#endif
#ifdef REAL

/* Both directions: compute Out from X, or add Out's gradient to X's. */
static void FN(walk)(frame f, REAL value, bool back, REAL *x, REAL *y)
{
    for (int64_t o = 0; o < f.outer; o++, x += f.h * f.w * f.inner)
        for (int64_t i = 0; i < f.oh; i++)
            for (int64_t j = 0; j < f.ow; j++) {
                const int64_t r = source(f.mode, i, f.top, f.h);
                const int64_t c = source(f.mode, j, f.left, f.w);
                REAL *at = r < 0 || c < 0 ? NULL : x + (r * f.w + c) * f.inner;
                for (int64_t k = 0; k < f.inner; k++, y++)
                    if (!back)
                        *y = at ? at[k] : value;
                    else if (at)
                        at[k] += *y;
            }
}

static fl_err FN(pad2d)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    FN(walk)
    (frame_of(c, &x->shape, &y->shape), fl_attr_f32(c, "pad_value"), false,
     x->data, y->data);
    return FL_OK;
}

static fl_err FN(pad2d_grad)(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    FN(walk)
    (frame_of(c, &dx->shape, &dy->shape), 0, true, fl_cleared(dx), dy->data);
    return FL_OK;
}

#else

FL_REAL_KERNEL(pad2d)
FL_REAL_KERNEL(pad2d_grad)

static fl_err check_mirror(const fl_infer *x, const fl_shape *s, int at)
{
    const int64_t *pad = fl_meta_attr(x, "paddings")->longs;
    const mode m = mode_of(fl_meta_attr(x, "mode")->s);
    for (int i = 0; i < 4; i++) {
        const int64_t have = s->dim[at + i / 2];
        if (pad[i] < 0)
            return fl_fail(FL_EINVAL,
                           "pad2d: paddings has %lld, expected 0 or more",
                           (long long)pad[i]);
        if ((m == REFLECT && have >= 0 && pad[i] >= have) ||
            (m == EDGE && pad[i] && !have))
            return fl_fail(FL_ESHAPE,
                           "pad2d: %lld of padding, but X has %lld there to "
                           "take it from",
                           (long long)pad[i], (long long)have);
    }
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *pad = fl_meta_attr(x, "paddings");
    const char *format = fl_meta_attr(x, "data_format")->s;
    const char *name = fl_meta_attr(x, "mode")->s;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (in->shape.rank != 4 || pad->n != 4)
        return fl_fail(FL_ESHAPE,
                       "pad2d: X has %d dims, paddings %d numbers, expected 4 "
                       "and 4",
                       in->shape.rank, pad->n);
    if (mode_of(name) == MODES || (strcmp(format, "NCHW") && !is_nhwc(format)))
        return fl_fail(FL_EINVAL,
                       "pad2d: mode is \"%s\", data_format \"%s\", expected "
                       "constant, reflect or edge, NCHW or NHWC",
                       name, format);
    const int at = is_nhwc(format) ? 1 : 2;
    fl_shape s = in->shape;
    FL_TRY(check_mirror(x, &s, at));
    for (int i = 0; i < 4; i++)
        s.dim[at + i / 2] = fl_dim_add(s.dim[at + i / 2], pad->longs[i]);
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    return FL_OK;
}

const fl_op_def fl_op_pad2d = {
    .type = "pad2d",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"paddings", FL_ATTR_INTS, .n = 4,
              .longs = (const int64_t[]){0, 0, 0, 0}},
             {"mode", FL_ATTR_STRING, .s = "constant"},
             {"pad_value", FL_ATTR_FLOAT},
             {"data_format", FL_ATTR_STRING, .s = "NCHW"}},
    .infer = infer,
    .run = pad2d,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = pad2d_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
