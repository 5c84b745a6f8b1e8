/* SPDX-License-Identifier: Apache-2.0 */
/* rearrange.c - pictures whose elements change places: channels and pixels.
 *
 *   pixel_shuffle    r * r channels become r * r pixels: [N,C*r*r,H,W] to
 *                    [N,C,H*r,W*r], r = upscale_factor
 *   space_to_depth   Out is [N,C*b*b,H/b,W/b], b = blocksize, read from a
 *                    picture [N,C/(b*b),H*b,W*b] into which the channels of X
 *                    are written as pixels: Fluid's order, not the usual one
 *   shuffle_channel  channel j of each `group` goes to place j * group + its
 *                    group
 *   gradients        the way back
 *
 * Each is X cut into six dimensions that stand in another order in Out. */
#include "kernel/move.h"

/* Dimensions of X, the outermost first, and their steps in Out. */
typedef struct cut {
    int64_t dim[6], step[6];
} cut;

static void move_elements(const fl_call *c, const char *from, const char *to,
                          cut k, bool back)
{
    const fl_tensor *x = fl_in(c, from);
    fl_box b = {0};
    int64_t inner = fl_tensor_numel(x);
    if (!inner)
        return;
    for (int i = 0; i < 6; i++) {
        inner /= k.dim[i];
        fl_box_dim(&b, k.dim[i], back ? inner : k.step[i],
                   back ? k.step[i] : inner);
    }
    fl_box_copy(&b, fl_dtype_size(x->dtype), fl_out(c, to)->data, x->data);
}

static cut cut_pixels(const fl_shape *x, int64_t r)
{
    const int64_t h = x->dim[2], w = x->dim[3], c = x->dim[1] / (r * r);
    return (cut){{x->dim[0], c, r, r, h, w},
                 {c * r * r * h * w, r * r * h * w, w * r, 1, w * r * r, r}};
}

static cut cut_space(const fl_shape *x, int64_t b)
{
    const int64_t h = x->dim[2], w = x->dim[3], c = x->dim[1] / (b * b);
    return (cut){{x->dim[0], b, b, c, h, w},
                 {c * b * b * h * w, w * b, 1, b * b * h * w, w * b * b, b}};
}

static cut cut_groups(const fl_shape *x, int64_t g)
{
    const int64_t h = x->dim[2], w = x->dim[3], c = x->dim[1] / g;
    return (cut){{x->dim[0], g, c, h, w, 1},
                 {c * g * h * w, h * w, g * h * w, w, 1, 1}};
}

/* `by` is the attribute; it, or its square, must divide C. */
static fl_err infer_picture(const fl_infer *x, const char *attr, bool squared,
                            int64_t *by)
{
    const fl_shape *s = &fl_meta_in(x, "X", 0)->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    *by = fl_meta_attr(x, attr)->i;
    if (*by < 1 || *by > 4096)
        return fl_fail(FL_EINVAL, "%s: %s is %lld, expected 1 to 4096",
                       fl_meta_type(x), attr, (long long)*by);
    const int64_t divisor = squared ? *by * *by : *by;
    if (s->rank != 4 || (s->dim[1] >= 0 && s->dim[1] % divisor))
        return fl_fail(
            FL_ESHAPE, "%s: X is %s, expected [N,C,H,W] whose C %lld divides",
            fl_meta_type(x), fl_shape_text(s, text), (long long)divisor);
    return FL_OK;
}

/* Set the shape of Out: channels divided by c, height and width multiplied by
 * hw. */
static void set_picture(const fl_infer *x, int64_t c, int64_t hw)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const int64_t *dim = in->shape.dim;
    const fl_shape s = {4,
                        {dim[0], dim[1] < 0 ? -1 : dim[1] / c,
                         fl_dim_mul(dim[2], hw), fl_dim_mul(dim[3], hw)}};
    fl_meta_set(x, "Out", 0, in->dtype, &s);
}

static fl_err infer_pixels(fl_infer *x)
{
    int64_t r;
    FL_TRY(infer_picture(x, "upscale_factor", true, &r));
    set_picture(x, r * r, r);
    return FL_OK;
}

static fl_err infer_space(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    int64_t b;
    char text[FL_SHAPE_TEXT];
    FL_TRY(infer_picture(x, "blocksize", true, &b));
    fl_shape s = in->shape;
    for (int i = 2; i < 4; i++) {
        if (s.dim[i] >= 0 && s.dim[i] % b)
            return fl_fail(FL_ESHAPE,
                           "%s: X is %s, whose dim %d %lld does not "
                           "divide",
                           fl_meta_type(x), fl_shape_text(&in->shape, text), i,
                           (long long)b);
        s.dim[i] = s.dim[i] < 0 ? -1 : s.dim[i] / b;
    }
    s.dim[1] = fl_dim_mul(s.dim[1], b * b);
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    return FL_OK;
}

static fl_err infer_groups(fl_infer *x)
{
    int64_t g;
    FL_TRY(infer_picture(x, "group", false, &g));
    set_picture(x, 1, 1);
    return FL_OK;
}

#define REARRANGE(name, attribute, kind, default, cut_of, rule)                \
    static fl_err name##_run(fl_call *c)                                       \
    {                                                                          \
        move_elements(                                                         \
            c, "X", "Out",                                                     \
            cut_of(&fl_in(c, "X")->shape, fl_attr_i64(c, attribute)), false);  \
        return FL_OK;                                                          \
    }                                                                          \
    static fl_err name##_grad_run(fl_call *c)                                  \
    {                                                                          \
        move_elements(                                                         \
            c, "Out@GRAD", "X@GRAD",                                           \
            cut_of(&fl_in(c, "X")->shape, fl_attr_i64(c, attribute)), true);   \
        return FL_OK;                                                          \
    }                                                                          \
    const fl_op_def fl_op_##name = {                                           \
        .type = #name,                                                         \
        .in = {{"X"}},                                                         \
        .out = {{"Out"}},                                                      \
        .attr = {{attribute, kind, .i = default}},                             \
        .infer = rule,                                                         \
        .run = name##_run,                                                     \
        .grad_in = {"X", "Out@GRAD"},                                          \
        .grad_run = name##_grad_run,                                           \
        .grad_infer = fl_infer_grad_of_rule,                                   \
    };

REARRANGE(pixel_shuffle, "upscale_factor", FL_ATTR_INT, 1, cut_pixels,
          infer_pixels)
REARRANGE(space_to_depth, "blocksize", FL_ATTR_LONG, 2, cut_space, infer_space)
REARRANGE(shuffle_channel, "group", FL_ATTR_INT, 1, cut_groups, infer_groups)
