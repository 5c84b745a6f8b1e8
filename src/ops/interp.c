/* SPDX-License-Identifier: Apache-2.0 */
/* Images [N,C,H,W] are resized to [N,C,out_h,out_w], or to the size in OutSize
 * (i32 [2]).
 *
 *   nearest_interp   each element of Out is the nearest one of X
 *   bilinear_interp  it is interpolated between the four nearest ones
 *   gradients        Out@GRAD is added to the elements of X@GRAD with the same
 *                    weights
 *
 * With align_corners the corners of X and Out coincide. Otherwise element k of
 * Out is at k * in / out, or with align_mode 0 at (k + 0.5) * in / out - 0.5.
 */
#define FL_SELF "ops/interp.c"
#include "op/real.h"

#ifndef FL_OPS_INTERP_C
#define FL_OPS_INTERP_C

#include <string.h>

/* The position of element k of Out in X: between lo and hi, with the weight of
 * hi. */
typedef struct between {
    int64_t lo, hi;
    float weight;
} between;

typedef struct scaling {
    bool bilinear, align_corners, centered;
} scaling;

static scaling scaling_of(const fl_call *c, bool bilinear)
{
    const bool align = fl_attr_bool(c, "align_corners");
    return (scaling){bilinear, align,
                     !align && fl_attr_i64(c, "align_mode") == 0};
}

static between between_of(scaling s, int64_t k, int64_t in, int64_t out)
{
    const float ratio = !s.align_corners ? (float)in / (float)out
                        : out > 1        ? (float)(in - 1) / (float)(out - 1)
                                         : 0;
    float at = ratio * (float)k;
    if (!s.bilinear) {
        int64_t near = (int64_t)(s.align_corners ? at + 0.5f : at);
        near = near < in ? near : in - 1;
        return (between){near, near, 0};
    }
    if (s.centered)
        at = ratio * ((float)k + 0.5f) - 0.5f;
    at = at < 0 ? 0 : at;
    int64_t lo = (int64_t)at;
    lo = lo < in ? lo : in - 1;
    return (between){lo, lo + 1 < in ? lo + 1 : lo, at - (float)lo};
}

/* The positions of all rows and columns of Out, in scratch memory. */
static fl_err find_places(fl_call *c, scaling s, const fl_shape *in,
                          const fl_shape *out, const between **places)
{
    const int64_t h = out->dim[2], w = out->dim[3];
    between *at = fl_scratch(c, h + w, sizeof *at);
    if (!at)
        return FL_ENOMEM;
    for (int64_t k = 0; k < h; k++)
        at[k] = between_of(s, k, in->dim[2], h);
    for (int64_t k = 0; k < w; k++)
        at[h + k] = between_of(s, k, in->dim[3], w);
    *places = at;
    return FL_OK;
}

#endif
#ifdef REAL

static REAL FN(mix)(const REAL *x, int64_t width, between r, between c)
{
    const REAL u = r.weight, v = c.weight;
    const REAL *low = x + r.lo * width, *high = x + r.hi * width;
    return (1 - u) * ((1 - v) * low[c.lo] + v * low[c.hi]) +
           u * ((1 - v) * high[c.lo] + v * high[c.hi]);
}

static void FN(give)(REAL *x, int64_t width, between r, between c, REAL d)
{
    const REAL u = r.weight, v = c.weight;
    REAL *low = x + r.lo * width, *high = x + r.hi * width;
    low[c.lo] += (1 - u) * (1 - v) * d;
    low[c.hi] += (1 - u) * v * d;
    high[c.lo] += u * (1 - v) * d;
    high[c.hi] += u * v * d;
}

/* Both directions: y from x, or dx from dy. */
static void FN(resize)(const fl_shape *in, const fl_shape *out,
                       const between *at, bool back, REAL *x, REAL *y)
{
    const int64_t h = out->dim[2], w = out->dim[3];
    for (int64_t i = 0; i < in->dim[0] * in->dim[1]; i++) {
        for (int64_t r = 0; r < h; r++)
            for (int64_t c = 0; c < w; c++, y++)
                if (back)
                    FN(give)(x, in->dim[3], at[r], at[h + c], *y);
                else
                    *y = FN(mix)(x, in->dim[3], at[r], at[h + c]);
        x += in->dim[2] * in->dim[3];
    }
}

#else

static fl_err resize(fl_call *c, bool bilinear)
{
    const fl_tensor *x = fl_in(c, "X"), *size = fl_in(c, "OutSize");
    fl_value *out = fl_out_value(c, "Out", 0);
    fl_tensor *y = &out->tensor;
    const between *at;
    if (size) {
        const int32_t *hw = size->data;
        const fl_shape s = {4,
                            {x->shape.dim[0], x->shape.dim[1], hw[0], hw[1]}};
        if (hw[0] < 1 || hw[1] < 1)
            return fl_fail(FL_EINVAL,
                           "%s: OutSize is %d by %d, expected 1 or more each",
                           c->def->type, (int)hw[0], (int)hw[1]);
        out->kind = FL_LOD_TENSOR;
        FL_TRY(fl_tensor_resize(y, x->dtype, &s));
    }
    FL_TRY(find_places(c, scaling_of(c, bilinear), &x->shape, &y->shape, &at));
    if (x->dtype == FL_F64)
        resize_f64(&x->shape, &y->shape, at, false, x->data, y->data);
    else
        resize_f32(&x->shape, &y->shape, at, false, x->data, y->data);
    return FL_OK;
}

static fl_err resize_grad(fl_call *c, bool bilinear)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    const between *at;
    FL_TRY(
        find_places(c, scaling_of(c, bilinear), &dx->shape, &dy->shape, &at));
    memset(dx->data, 0, fl_tensor_bytes(dx));
    if (dx->dtype == FL_F64)
        resize_f64(&dx->shape, &dy->shape, at, true, dx->data, dy->data);
    else
        resize_f32(&dx->shape, &dy->shape, at, true, dx->data, dy->data);
    return FL_OK;
}

static fl_err out_shape(const fl_infer *x, fl_shape *out)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const int64_t h = fl_meta_attr(x, "out_h")->i;
    const int64_t w = fl_meta_attr(x, "out_w")->i;
    const fl_shape two = {1, {2}};
    const bool given = fl_meta_in(x, "OutSize", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(fl_meta_expect(x, "OutSize", FL_I32, &two));
    bool empty = in->shape.rank != 4;
    for (int i = 2; !empty && i < 4; i++)
        empty = !in->shape.dim[i];
    if (empty || (!given && (h < 1 || w < 1)))
        return fl_fail(FL_ESHAPE,
                       "%s: X is %s, out_h %lld, out_w %lld, expected "
                       "[N,C,H,W] and sizes of 1 or more",
                       fl_meta_type(x), fl_shape_text(&in->shape, text),
                       (long long)h, (long long)w);
    *out = in->shape;
    out->dim[2] = given ? -1 : h;
    out->dim[3] = given ? -1 : w;
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    fl_shape s;
    FL_TRY(out_shape(x, &s));
    if (s.dim[2] < 0 && fl_meta_running(x))
        return FL_OK; /* the kernel resizes it */
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &s);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape s;
    FL_TRY(out_shape(x, &s));
    FL_TRY(fl_meta_expect(x, "Out@GRAD", in->dtype, &s));
    fl_meta_set(x, "X@GRAD", 0, in->dtype, &in->shape);
    return FL_OK;
}

#define INTERP(name, bilinear)                                                 \
    static fl_err name##_run(fl_call *c)                                       \
    {                                                                          \
        return resize(c, bilinear);                                            \
    }                                                                          \
    static fl_err name##_grad_run(fl_call *c)                                  \
    {                                                                          \
        return resize_grad(c, bilinear);                                       \
    }                                                                          \
    const fl_op_def fl_op_##name = {                                           \
        .type = #name,                                                         \
        .in = {{"X"}, {"OutSize", FL_OPTIONAL | FL_NOGRAD | FL_SHAPES}},       \
        .out = {{"Out"}},                                                      \
        .attr = {{"out_h", FL_ATTR_INT},                                       \
                 {"out_w", FL_ATTR_INT},                                       \
                 {"interp_method", FL_ATTR_STRING, .s = "bilinear"},           \
                 {"align_corners", FL_ATTR_BOOL, .b = true},                   \
                 {"align_mode", FL_ATTR_INT, .i = 1}},                         \
        .infer = infer,                                                        \
        .run = name##_run,                                                     \
        .grad_in = {"X", "OutSize", "Out@GRAD"},                               \
        .grad_run = name##_grad_run,                                           \
        .grad_infer = infer_grad,                                              \
    };

INTERP(bilinear_interp, true)
INTERP(nearest_interp, false)

#endif
