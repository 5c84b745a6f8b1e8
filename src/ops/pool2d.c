/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d    one element of Out for each window of X, channel by channel
 *
 *     max   the largest; its gradient goes to the first such element of the
 *           window, row by row
 *     avg   the mean, of what lies inside X (exclusive) or of the window with
 *           its padding as zeros; each element gets an equal share back
 *
 * With global_pooling the window is all of X. With adaptive, ksize is the size
 * of Out, and window o of n covers [o * dim / n, (o + 1) * dim / n), its end
 * rounded up. */
#define FL_SELF "ops/pool2d.c"
#include "op/real.h"

#ifndef FL_OPS_POOL2D_C
#define FL_OPS_POOL2D_C

#include <string.h>

typedef struct pool {
    bool max, exclusive, adaptive;
    int64_t dim[2], out[2]; /* rows and columns of X and of Out */
    int64_t size[2], stride[2], pad[2];
} pool;

/* A window along one dim, without its padding: [from, to) of X. */
typedef struct span {
    int64_t from, to;
} span;

static span span_of(const pool *p, int axis, int64_t o)
{
    int64_t dim = p->dim[axis], n = p->out[axis];
    if (p->adaptive) {
        int64_t from = o * dim / n, to = ((o + 1) * dim + n - 1) / n;
        return (span){from, to};
    }
    int64_t from = o * p->stride[axis] - p->pad[axis];
    int64_t to = from + p->size[axis];
    return (span){from > 0 ? from : 0, to < dim ? to : dim};
}

static int64_t share_of(const pool *p, span r, span c)
{
    return p->exclusive || p->adaptive ? (r.to - r.from) * (c.to - c.from)
                                       : p->size[0] * p->size[1];
}

/* The common case has its own kernels: windows of 2 by 2 without overlap. */
static bool is_halving(const pool *p)
{
    for (int i = 0; i < 2; i++)
        if (p->adaptive || p->size[i] != 2 || p->stride[i] != 2 || p->pad[i] ||
            2 * p->out[i] > p->dim[i])
            return false;
    return true;
}

static pool pool_of(const fl_call *c, const fl_shape *x, const fl_shape *y)
{
    bool all = fl_attr_bool(c, "global_pooling");
    pool p = {
        .max = !strcmp(fl_attr_str(c, "pooling_type"), "max"),
        .exclusive = fl_attr_bool(c, "exclusive"),
        .adaptive = fl_attr_bool(c, "adaptive") && !all,
    };
    for (int i = 0; i < 2; i++) {
        p.dim[i] = x->dim[2 + i];
        p.out[i] = y->dim[2 + i];
        p.size[i] = all ? p.dim[i] : fl_attr_get(c, "ksize")->longs[i];
        p.stride[i] = all ? 1 : fl_attr_get(c, "strides")->longs[i];
        p.pad[i] = all ? 0 : fl_attr_get(c, "paddings")->longs[i];
    }
    return p;
}

enum {
    LANES = 8
};

#define VEC         FN(vec)
#define HALF        FN(half)
#define MASK        FN(mask)
#define INLINE      static inline __attribute__((always_inline))
#define FL_TWICE(v) __builtin_shufflevector(v, v, 0, 0, 1, 1, 2, 2, 3, 3)
#define FL_SWAP(v)  __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)

#endif
#ifdef REAL

typedef REAL VEC __attribute__((vector_size(LANES * sizeof(REAL))));
typedef REAL HALF __attribute__((vector_size(LANES / 2 * sizeof(REAL))));
typedef __typeof__(__builtin_choose_expr(sizeof(REAL) == 4, (int32_t)0,
                                         (int64_t)0)) FN(bits);
typedef FN(bits) MASK __attribute__((vector_size(LANES * sizeof(REAL))));

/* --- 2 by 2 ------------------------------------------------------------ */

/* Compute n elements from two rows of X. */
FL_CLONES static void FN(max_halves)(int64_t n, const REAL *a, const REAL *b,
                                     REAL *y)
{
    for (int64_t i = 0; i < n; i++) {
        REAL p = a[2 * i] >= a[2 * i + 1] ? a[2 * i] : a[2 * i + 1];
        REAL q = b[2 * i] >= b[2 * i + 1] ? b[2 * i] : b[2 * i + 1];
        y[i] = p >= q ? p : q;
    }
}

FL_CLONES static void FN(avg_halves)(int64_t n, const REAL *a, const REAL *b,
                                     REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (a[2 * i] + a[2 * i + 1] + b[2 * i] + b[2 * i + 1]) / 4;
}

static void FN(halve)(const pool *p, const REAL *x, REAL *y)
{
    for (int64_t r = 0; r < p->out[0]; r++) {
        const REAL *a = x + 2 * r * p->dim[1], *b = a + p->dim[1];
        if (p->max)
            FN(max_halves)(p->out[1], a, b, y + r * p->out[1]);
        else
            FN(avg_halves)(p->out[1], a, b, y + r * p->out[1]);
    }
}

/* Four adjacent windows at once, in two rows: lanes 2i and 2i + 1 belong to
 * window i. The first of the largest elements gets the gradient. Works on whole
 * vectors, since rows are seldom longer than one. */
INLINE void FN(four_back)(const REAL *a, const REAL *b, const REAL *y,
                          const REAL *dy, REAL *da, REAL *db)
{
    const MASK odd = {0, -1, 0, -1, 0, -1, 0, -1};
    VEC up, down, high, low;
    HALF top, grad;
    memcpy(&up, a, sizeof up);
    memcpy(&down, b, sizeof down);
    memcpy(&top, y, sizeof top);
    memcpy(&grad, dy, sizeof grad);
    VEC max = FL_TWICE(top), d = FL_TWICE(grad);
    MASK in_up = up == max, in_down = down == max;
    MASK beside_up = FL_SWAP(in_up), beside_down = FL_SWAP(in_down);
    high = (VEC)((MASK)d & in_up & ~(odd & beside_up));
    low =
        (VEC)((MASK)d & in_down & ~(odd & beside_down) & ~(in_up | beside_up));
    memcpy(da, &high, sizeof high);
    memcpy(db, &low, sizeof low);
}

/* One window. */
INLINE void FN(one_back)(const REAL *a, const REAL *b, REAL max, REAL d,
                         REAL *da, REAL *db)
{
    const REAL *x[] = {a, a + 1, b, b + 1};
    REAL *dx[] = {da, da + 1, db, db + 1};
    bool found = false;
    for (int i = 0; i < 4; i++) {
        bool here = !found && *x[i] == max;
        *dx[i] = here ? d : 0;
        found |= here;
    }
}

FL_CLONES static void FN(max_double)(const pool *p, const REAL *x,
                                     const REAL *y, const REAL *dy, REAL *dx)
{
    const int64_t n = p->out[1], width = p->dim[1];
    for (int64_t r = 0; r < p->out[0]; r++, y += n, dy += n) {
        const REAL *a = x + 2 * r * width, *b = a + width;
        REAL *da = dx + 2 * r * width, *db = da + width;
        int64_t i = 0;
        for (; i + 4 <= n; i += 4)
            FN(four_back)
        (a + 2 * i, b + 2 * i, y + i, dy + i, da + 2 * i, db + 2 * i);
        for (; i < n; i++)
            FN(one_back)
        (a + 2 * i, b + 2 * i, y[i], dy[i], da + 2 * i, db + 2 * i);
    }
}

FL_CLONES static void FN(avg_double)(int64_t n, const REAL *dy, REAL *da,
                                     REAL *db)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        da[2 * i] = da[2 * i + 1] = db[2 * i] = db[2 * i + 1] = dy[i] / 4;
}

/* Elements that no window covers get no gradient. */
static void FN(clear_rest)(const pool *p, REAL *dx)
{
    int64_t width = p->dim[1], rows = 2 * p->out[0], covered = 2 * p->out[1];
    for (int64_t r = 0; covered < width && r < rows; r++)
        memset(dx + r * width + covered, 0,
               (size_t)(width - covered) * sizeof *dx);
    memset(dx + rows * width, 0,
           (size_t)((p->dim[0] - rows) * width) * sizeof *dx);
}

static void FN(redouble)(const pool *p, const REAL *x, const REAL *y,
                         const REAL *dy, REAL *dx)
{
    if (p->max)
        FN(max_double)(p, x, y, dy, dx);
    for (int64_t r = 0; !p->max && r < p->out[0]; r++) {
        REAL *a = dx + 2 * r * p->dim[1];
        FN(avg_double)(p->out[1], dy + r * p->out[1], a, a + p->dim[1]);
    }
    FN(clear_rest)(p, dx);
}

/* --- Any window -------------------------------------------------------- */

static REAL FN(window)(const pool *p, span r, span c, const REAL *x)
{
    REAL max = x[r.from * p->dim[1] + c.from];
    double sum = 0; /* a window may be the whole image */
    for (int64_t i = r.from; i < r.to; i++)
        for (int64_t j = c.from; j < c.to; j++) {
            REAL v = x[i * p->dim[1] + j];
            max = v > max ? v : max;
            sum += v;
        }
    return p->max ? max : (REAL)sum / (REAL)share_of(p, r, c);
}

static void FN(any)(const pool *p, const REAL *x, REAL *y)
{
    for (int64_t i = 0; i < p->out[0]; i++)
        for (int64_t j = 0; j < p->out[1]; j++)
            *y++ = FN(window)(p, span_of(p, 0, i), span_of(p, 1, j), x);
}

static void FN(back)(const pool *p, span r, span c, const REAL *x, REAL y,
                     REAL dy, REAL *dx)
{
    REAL share = p->max ? dy : dy / (REAL)share_of(p, r, c);
    for (int64_t i = r.from; i < r.to; i++)
        for (int64_t j = c.from; j < c.to; j++) {
            int64_t k = i * p->dim[1] + j;
            if (p->max && x[k] != y)
                continue;
            dx[k] += share;
            if (p->max)
                return;
        }
}

static void FN(any_back)(const pool *p, const REAL *x, const REAL *y,
                         const REAL *dy, REAL *dx)
{
    memset(dx, 0, (size_t)(p->dim[0] * p->dim[1]) * sizeof *dx);
    for (int64_t i = 0; i < p->out[0]; i++)
        for (int64_t j = 0; j < p->out[1]; j++)
            FN(back)
    (p, span_of(p, 0, i), span_of(p, 1, j), x, *y++, *dy++, dx);
}

/* --- Kernels ----------------------------------------------------------- */

static fl_err FN(pool2d)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    pool p = pool_of(c, &x->shape, &y->shape);
    int64_t in = p.dim[0] * p.dim[1], out = p.out[0] * p.out[1];
    bool halving = is_halving(&p);
    for (int64_t i = 0, n = fl_shape_span(&x->shape, 0, 2); i < n; i++) {
        const REAL *from = (const REAL *)x->data + i * in;
        REAL *to = (REAL *)y->data + i * out;
        if (halving)
            FN(halve)(&p, from, to);
        else
            FN(any)(&p, from, to);
    }
    return FL_OK;
}

static fl_err FN(pool2d_grad)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *y = fl_in(c, "Out");
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    pool p = pool_of(c, &x->shape, &y->shape);
    int64_t in = p.dim[0] * p.dim[1], out = p.out[0] * p.out[1];
    bool halving = is_halving(&p);
    for (int64_t i = 0, n = fl_shape_span(&x->shape, 0, 2); i < n; i++) {
        const REAL *from = (const REAL *)x->data + i * in;
        const REAL *was = (const REAL *)y->data + i * out;
        REAL *to = (REAL *)dx->data + i * in;
        if (halving)
            FN(redouble)(&p, from, was, dy + i * out, to);
        else
            FN(any_back)(&p, from, was, dy + i * out, to);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(pool2d)
FL_REAL_KERNEL(pool2d_grad)

static fl_err check_attrs(const fl_infer *x)
{
    const char *type = fl_meta_attr(x, "pooling_type")->s;
    const struct {
        const char *name;
        int64_t least;
    } lists[] = {{"ksize", 1}, {"strides", 1}, {"paddings", 0}};
    if (!type || (strcmp(type, "max") && strcmp(type, "avg")))
        return fl_fail(FL_EINVAL,
                       "%s: pooling_type is \"%s\", expected max or avg",
                       fl_meta_type(x), type ? type : "");
    for (int i = 0; i < 3; i++) {
        const fl_attr *a = fl_meta_attr(x, lists[i].name);
        bool all = fl_meta_attr(x, "global_pooling")->b;
        if (a->n != 2)
            return fl_fail(FL_EINVAL, "%s: %s has %d numbers, expected 2",
                           fl_meta_type(x), lists[i].name, a->n);
        for (int k = 0; k < 2 && !all; k++)
            if (a->longs[k] < lists[i].least)
                return fl_fail(
                    FL_EINVAL, "%s: %s has %lld, expected %lld or more",
                    fl_meta_type(x), lists[i].name, (long long)a->longs[k],
                    (long long)lists[i].least);
    }
    return FL_OK;
}

/* The number of windows along dimension `axis`; 0 if none fits. */
static int64_t windows(const fl_infer *x, int64_t dim, int axis)
{
    int64_t size = fl_meta_attr(x, "ksize")->longs[axis];
    int64_t pad = fl_meta_attr(x, "paddings")->longs[axis];
    int64_t stride = fl_meta_attr(x, "strides")->longs[axis];
    int64_t room = fl_dim_add(dim, 2 * pad) - size;
    if (fl_meta_attr(x, "global_pooling")->b)
        return 1;
    if (fl_meta_attr(x, "adaptive")->b)
        return size;
    if (fl_meta_attr(x, "ceil_mode")->b)
        room = room < 0 ? room + stride - 1 : fl_dim_add(room, stride - 1);
    int64_t n = room < 0 ? 0 : room / stride + 1;
    bool hollow = room / stride * stride - pad >= dim || pad >= size;
    return dim == -1 ? -1 : hollow ? 0 : n;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const char *format = fl_meta_attr(x, "data_format")->s;
    fl_shape s = in->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (format && strcmp(format, "NCHW") && strcmp(format, "AnyLayout"))
        return fl_fail(FL_EINVAL,
                       "%s: data_format is \"%s\", expected NCHW or AnyLayout",
                       fl_meta_type(x), format);
    if (s.rank != 4)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected 4 dims",
                       fl_meta_type(x), fl_shape_text(&s, text));
    FL_TRY(check_attrs(x));
    for (int i = 0; i < 2; i++) {
        s.dim[2 + i] = windows(x, in->shape.dim[2 + i], i);
        if (!s.dim[2 + i] || !in->shape.dim[2 + i])
            return fl_fail(FL_ESHAPE,
                           "%s: a window of %lld with padding %lld has no "
                           "place in X %s, or would lie in the padding alone",
                           fl_meta_type(x),
                           (long long)fl_meta_attr(x, "ksize")->longs[i],
                           (long long)fl_meta_attr(x, "paddings")->longs[i],
                           fl_shape_text(&in->shape, text));
    }
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    FL_TRY(fl_infer_grad_of_rule(x));
    return fl_meta_alike(x, "Out", "Out@GRAD");
}

const fl_op_def fl_op_pool2d = {
    .type = "pool2d",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr =
        {
            {"pooling_type", FL_ATTR_STRING, .required = true},
            {"ksize", FL_ATTR_INTS, .required = true},
            {"global_pooling", FL_ATTR_BOOL},
            {"strides", FL_ATTR_INTS, .n = 2, .longs = (const int64_t[]){1, 1}},
            {"paddings", FL_ATTR_INTS, .n = 2,
             .longs = (const int64_t[]){0, 0}},
            {"exclusive", FL_ATTR_BOOL, .b = true},
            {"adaptive", FL_ATTR_BOOL},
            {"ceil_mode", FL_ATTR_BOOL},
            {"use_cudnn", FL_ATTR_BOOL},
            {"use_mkldnn", FL_ATTR_BOOL},
            {"data_format", FL_ATTR_STRING, .s = "AnyLayout"},
        },
    .infer = infer,
    .run = pool2d,
    .grad_in = {"X", "Out", "Out@GRAD"},
    .grad_run = pool2d_grad,
    .grad_infer = infer_grad,
};

#endif
