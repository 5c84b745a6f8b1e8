/* SPDX-License-Identifier: Apache-2.0 */
/* batch_norm   Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias,
 *              channel by channel
 *
 * In training, mean and variance are the batch's (the variance divides by n),
 * and the running ones move: MeanOut = Mean * momentum + mean * (1 - momentum),
 * VarianceOut likewise; both are usually the same variables as the inputs. With
 * is_test or use_global_stats they are Mean and Variance, which stay.
 *
 * SavedMean is the mean that was used, SavedVariance 1 / sqrt(variance +
 * epsilon): all that the gradient needs of them. A single element per channel
 * has no variance: Y = X. */
#define FL_SELF "ops/batch_norm.c"
#include "op/real.h"

#ifndef FL_OPS_BATCH_NORM_C
#define FL_OPS_BATCH_NORM_C

#include <string.h>

/* X as [outer, channels, inner]. */
typedef struct layout {
    int64_t outer, channels, inner;
} layout;

static int channel_dim(const fl_shape *s, const char *data_layout)
{
    return strcmp(data_layout, "NHWC") ? 1 : s->rank - 1;
}

static layout layout_of(const fl_call *c)
{
    const fl_shape *s = &fl_in(c, "X")->shape;
    int dim = channel_dim(s, fl_attr_str(c, "data_layout"));
    layout at = {fl_shape_span(s, 0, dim), s->dim[dim],
                 fl_shape_span(s, dim + 1, s->rank)};
    if (!at.channels ||
        !at.inner) /* a shape may have many rows and no elements */
        at.outer = 0;
    return at;
}

static bool is_fixed(const fl_call *c)
{
    return fl_attr_bool(c, "is_test") || fl_attr_bool(c, "use_global_stats");
}

#endif
#ifdef REAL

/* --- Loops over a line of elements ------------------------------------- */

/* y = x * a + b */
FL_CLONES static void FN(line)(int64_t n, const REAL *x, REAL a, REAL b,
                               REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * a + b;
}

/* dx = dy * a + x * b + e */
FL_CLONES static void FN(grad_line)(int64_t n, const REAL *dy, const REAL *x,
                                    REAL a, REAL b, REAL e, REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * a + x[i] * b + e;
}

/* --- The same where channels stand side by side ------------------------ */

FL_CLONES static void FN(add_dot_from)(int64_t n, const REAL *x, const REAL *by,
                                       const REAL *y, const REAL *shift,
                                       REAL *sum)
{
    FL_APART
    for (int64_t c = 0; c < n; c++)
        sum[c] += (x[c] - by[c]) * (y[c] - (shift ? shift[c] : 0));
}

FL_CLONES static void FN(line_across)(int64_t n, const REAL *x, const REAL *a,
                                      const REAL *b, REAL *y)
{
    FL_APART
    for (int64_t c = 0; c < n; c++)
        y[c] = x[c] * a[c] + b[c];
}

FL_CLONES static void FN(grad_across)(int64_t n, const REAL *dy, const REAL *x,
                                      const REAL *a, const REAL *b,
                                      const REAL *e, REAL *dx)
{
    FL_APART
    for (int64_t c = 0; c < n; c++)
        dx[c] = dy[c] * a[c] + x[c] * b[c] + e[c];
}

/* --- Sums over a channel ----------------------------------------------- */

static void FN(sums)(layout at, const REAL *x, double *total, REAL *sum)
{
    FN(fl_rows_clear)(at.channels, sum, total);
    for (int64_t o = 0; o < at.outer; o++, x += at.channels * at.inner) {
        if (at.inner == 1)
            FN(fl_add)(at.channels, x, sum);
        for (int64_t c = 0; at.inner != 1 && c < at.channels; c++)
            sum[c] += FN(fl_sum)(at.inner, x + c * at.inner);
        FN(fl_rows_added)(at.channels, o, at.outer, sum, total);
    }
}

/* Sum of (x - by) * (y - shift); shift may be NULL. */
static void FN(dots)(layout at, const REAL *x, const REAL *by, const REAL *y,
                     const REAL *shift, double *total, REAL *sum)
{
    FN(fl_rows_clear)(at.channels, sum, total);
    for (int64_t o = 0; o < at.outer; o++) {
        if (at.inner == 1)
            FN(add_dot_from)(at.channels, x, by, y, shift, sum);
        for (int64_t c = 0; at.inner != 1 && c < at.channels; c++)
            sum[c] += FN(fl_dot_from)(at.inner, x + c * at.inner, by[c],
                                      y + c * at.inner, shift ? shift[c] : 0);
        FN(fl_rows_added)(at.channels, o, at.outer, sum, total);
        x += at.channels * at.inner;
        y += at.channels * at.inner;
    }
}

static void FN(divide)(int64_t n, REAL by, REAL *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= by;
}

/* --- Forward ----------------------------------------------------------- */

static void FN(move)(int64_t n, REAL momentum, const REAL *old,
                     const REAL *batch, REAL *out)
{
    for (int64_t c = 0; c < n; c++)
        out[c] = old[c] * momentum + batch[c] * (1 - momentum);
}

/* Compute Y from the mean and 1 / deviation. */
static fl_err FN(apply)(fl_call *c, layout at, const REAL *mean,
                        const REAL *inv)
{
    const REAL *x = fl_in(c, "X")->data, *bias = fl_in(c, "Bias")->data;
    const REAL *scale = fl_in(c, "Scale")->data;
    REAL *y = fl_out(c, "Y")->data;
    REAL *a = fl_scratch(c, at.channels, 2 * sizeof *a);
    REAL *b = a + at.channels;
    if (!a)
        return FL_ENOMEM;
    for (int64_t i = 0; i < at.channels; i++) {
        a[i] = inv[i] * scale[i];
        b[i] = bias[i] - mean[i] * a[i];
    }
    for (int64_t o = 0; o < at.outer; o++)
        if (at.inner == 1)
            FN(line_across)
    (at.channels, x + o * at.channels, a, b, y + o * at.channels);
    else for (int64_t i = 0; i < at.channels; i++)
    {
        int64_t k = (o * at.channels + i) * at.inner;
        FN(line)(at.inner, x + k, a[i], b[i], y + k);
    }
    return FL_OK;
}

static void FN(invert)(int64_t n, REAL epsilon, const REAL *variance, REAL *inv)
{
    for (int64_t c = 0; c < n; c++)
        inv[c] = 1 / RM(sqrt)(variance[c] + epsilon);
}

/* If the running values are not updated in place, the outputs start as copies.
 */
static void FN(keep)(const fl_tensor *in, fl_tensor *out)
{
    if (out && out->data != in->data)
        memcpy(out->data, in->data, fl_tensor_bytes(in));
}

static fl_err FN(batch_norm)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const fl_tensor *mean = fl_in(c, "Mean"), *variance = fl_in(c, "Variance");
    fl_tensor *mean_out = fl_out(c, "MeanOut");
    fl_tensor *variance_out = fl_out(c, "VarianceOut");
    REAL *used = fl_out(c, "SavedMean")->data;
    REAL *inv = fl_out(c, "SavedVariance")->data;
    REAL epsilon = fl_attr_f32(c, "epsilon");
    REAL momentum = fl_attr_f32(c, "momentum");
    layout at = layout_of(c);
    int64_t n = at.outer * at.inner, channels = at.channels;
    FN(keep)(mean, mean_out);
    FN(keep)(variance, variance_out);
    if (is_fixed(c) || n <= 1) {
        memcpy(used, mean->data, (size_t)channels * sizeof *used);
        FN(invert)(channels, epsilon, variance->data, inv);
    } else {
        double *total = fl_scratch(c, channels, sizeof *total);
        if (!total)
            return FL_ENOMEM;
        FN(sums)(at, x->data, total, used);
        FN(divide)(channels, (REAL)n, used);
        FN(dots)(at, x->data, used, x->data, used, total, inv);
        FN(divide)(channels, (REAL)n, inv);
        FN(move)(channels, momentum, mean->data, used, mean_out->data);
        FN(move)(channels, momentum, variance->data, inv, variance_out->data);
        FN(invert)(channels, epsilon, inv, inv);
    }
    if (n == 1 && !is_fixed(c))
        memcpy(fl_out(c, "Y")->data, x->data, fl_tensor_bytes(x));
    else
        FL_TRY(FN(apply)(c, at, used, inv));
    return FL_OK;
}

/* --- Gradient ---------------------------------------------------------- */

/* dx = (dy - mean(dy) - xhat * mean(dy * xhat)) * scale / deviation, or without
 * the means if the statistics do not depend on X. For each channel this is a
 * linear function of dy and x. */
static void FN(by_x)(fl_call *c, layout at, const REAL *db, const REAL *ds,
                     REAL *line)
{
    const REAL *x = fl_in(c, "X")->data, *dy = fl_in(c, "Y@GRAD")->data;
    const REAL *mean = fl_in(c, "SavedMean")->data;
    const REAL *inv = fl_in(c, "SavedVariance")->data;
    const REAL *scale = fl_in(c, "Scale")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    REAL n = (REAL)(at.outer * at.inner), moves = is_fixed(c) ? 0 : 1;
    REAL *a = line, *b = a + at.channels, *e = b + at.channels;
    for (int64_t i = 0; i < at.channels; i++) {
        a[i] = scale[i] * inv[i];
        b[i] = -moves * a[i] * inv[i] * ds[i] / n;
        e[i] = -moves * a[i] * db[i] / n - b[i] * mean[i];
    }
    for (int64_t o = 0; o < at.outer; o++) {
        int64_t k = o * at.channels * at.inner;
        if (at.inner == 1)
            FN(grad_across)(at.channels, dy + k, x + k, a, b, e, dx + k);
        for (int64_t i = 0; at.inner != 1 && i < at.channels; i++) {
            FN(grad_line)(at.inner, dy + k, x + k, a[i], b[i], e[i], dx + k);
            k += at.inner;
        }
    }
}

static void FN(give)(const REAL *from, fl_tensor *to)
{
    if (to)
        memcpy(to->data, from, fl_tensor_bytes(to));
}

static fl_err FN(batch_norm_grad)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *dy = fl_in(c, "Y@GRAD");
    const REAL *mean = fl_in(c, "SavedMean")->data;
    const REAL *inv = fl_in(c, "SavedVariance")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    layout at = layout_of(c);
    double *total =
        fl_scratch(c, at.channels, sizeof *total + 5 * sizeof(REAL));
    if (!total)
        return FL_ENOMEM;
    REAL *db = (REAL *)(total + at.channels), *ds = db + at.channels;
    REAL *line = ds + at.channels;
    memset(db, 0, (size_t)(2 * at.channels) * sizeof *db);
    if (at.outer * at.inner == 1 && !is_fixed(c)) {
        FN(give)(dy->data, dx);
    } else {
        FN(sums)(at, dy->data, total, db);
        FN(dots)(at, x->data, mean, dy->data, NULL, total, ds);
        for (int64_t i = 0; i < at.channels; i++)
            ds[i] *= inv[i];
        if (dx)
            FN(by_x)(c, at, db, ds, line);
    }
    FN(give)(db, fl_out(c, "Bias@GRAD"));
    FN(give)(ds, fl_out(c, "Scale@GRAD"));
    return FL_OK;
}

#else

FL_REAL_KERNEL(batch_norm)
FL_REAL_KERNEL(batch_norm_grad)

/* Check X and return the number of its channels. */
static fl_err check_x(const fl_infer *x, fl_shape *channels)
{
    const fl_shape *s = &fl_meta_in(x, "X", 0)->shape;
    const char *order = fl_meta_attr(x, "data_layout")->s;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (!order || (strcmp(order, "NCHW") && strcmp(order, "NHWC") &&
                   strcmp(order, "AnyLayout")))
        return fl_fail(FL_EINVAL,
                       "%s: data_layout is \"%s\", expected NCHW or NHWC",
                       fl_meta_type(x), order ? order : "");
    if (s->rank < 2 || s->rank > 5)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected 2 to 5 dims",
                       fl_meta_type(x), fl_shape_text(s, text));
    *channels = (fl_shape){1, {s->dim[channel_dim(s, order)]}};
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    static const char *const ins[] = {"Scale", "Bias", "Mean", "Variance"};
    static const char *const outs[] = {"MeanOut", "VarianceOut", "SavedMean",
                                       "SavedVariance"};
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape channels;
    FL_TRY(check_x(x, &channels));
    for (int i = 0; i < 4; i++) {
        FL_TRY(fl_meta_expect(x, ins[i], in->dtype, &channels));
        fl_meta_set(x, outs[i], 0, in->dtype, &channels);
    }
    fl_meta_set(x, "Y", 0, in->dtype, &in->shape);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    static const char *const ins[] = {"Scale", "SavedMean", "SavedVariance"};
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape channels;
    FL_TRY(check_x(x, &channels));
    for (int i = 0; i < 3; i++)
        FL_TRY(fl_meta_expect(x, ins[i], in->dtype, &channels));
    FL_TRY(fl_meta_alike(x, "X", "Y@GRAD"));
    fl_meta_set(x, "X@GRAD", 0, in->dtype, &in->shape);
    fl_meta_set(x, "Scale@GRAD", 0, in->dtype, &channels);
    fl_meta_set(x, "Bias@GRAD", 0, in->dtype, &channels);
    return FL_OK;
}

const fl_op_def fl_op_batch_norm = {
    .type = "batch_norm",
    .in = {{"X"},
           {"Scale"},
           {"Bias"},
           {"Mean", FL_NOGRAD},
           {"Variance", FL_NOGRAD}},
    .out = {{"Y"},
            {"MeanOut"},
            {"VarianceOut"},
            {"SavedMean", FL_INTERMEDIATE},
            {"SavedVariance", FL_INTERMEDIATE}},
    .attr =
        {
            {"is_test", FL_ATTR_BOOL},
            {"momentum", FL_ATTR_FLOAT, .f = 0.9f},
            {"epsilon", FL_ATTR_FLOAT, .f = 1e-5f},
            {"data_layout", FL_ATTR_STRING, .s = "NCHW"},
            {"use_mkldnn", FL_ATTR_BOOL},
            {"fuse_with_relu", FL_ATTR_BOOL},
            {"use_global_stats", FL_ATTR_BOOL},
        },
    .flags = FL_OP_IN_PLACE | FL_OP_GRAD_IN_PLACE,
    .infer = infer,
    .run = batch_norm,
    .grad_in = {"X", "Y@GRAD", "Scale", "SavedMean", "SavedVariance"},
    .grad_run = batch_norm_grad,
    .grad_infer = infer_grad,
};

#endif
