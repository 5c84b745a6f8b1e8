/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - X folded along some of its dimensions: sum, mean, max, min, prod;
 * of bools: all, any.
 *
 * dim lists the dimensions (negative ones count from the end), reduce_all means
 * all; keep_dim leaves ones in their place. A result without dimensions is [1].
 *
 * X and Out are walked together as a box in which Out stands still along the
 * dimensions that vanish. The last dimension is either folded as a run, in
 * lanes, or added to a run of Out; both in a fixed order.
 *
 * Gradients: of max and min to every element that equals the result; of prod
 * Out@GRAD * Out / X, which is NaN where X is 0, as in Fluid. */
#ifndef FL_SELF
#include "kernel/move.h"

#include <string.h>

/* Set which dimensions are reduced. The list was checked before. */
static void mark(int rank, const fl_attr *dim, bool all, bool *gone)
{
    for (int i = 0; i < rank; i++)
        gone[i] = all || !dim->n;
    for (int i = 0; i < dim->n; i++)
        gone[dim->longs[i] + (dim->longs[i] < 0 ? rank : 0)] = true;
}

/* The shape of Out. */
static fl_box box_of(const fl_call *c)
{
    const fl_shape *x = &fl_in(c, "X")->shape;
    bool gone[FL_MAX_RANK];
    int64_t from[FL_MAX_RANK], to[FL_MAX_RANK], step = 1;
    fl_box b = {0};
    mark(x->rank, fl_attr_get(c, "dim"), fl_attr_bool(c, "reduce_all"), gone);
    fl_box_steps(x, from);
    for (int i = x->rank - 1; i >= 0; i--) {
        to[i] = gone[i] ? 0 : step;
        step *= gone[i] ? 1 : x->dim[i];
    }
    for (int i = 0; i < x->rank; i++)
        fl_box_dim(&b, x->dim[i], to[i], from[i]);
    return b;
}

enum {
    MANY = 2048, /* sums of more elements are made of blocks */
    ROWS = 128,  /* rows of a block */
};

#define FL_SELF "ops/reduce.c"
#include "op/number.h"
#endif
#ifdef NUM

enum {
    FN(LANES) = 16
};

typedef struct FN(fold) {
    NUM start;
    NUM (*run)(int64_t n, const NUM *x);           /* reduces x to one number */
    void (*into)(int64_t n, const NUM *x, NUM *y); /* combines y[i] with x[i] */
} FN(fold);

/* The formula combines a, which is reduced already, with b. */
#define FOLD(name, first, formula)                                             \
    FL_CLONES static void FN(name##_into)(int64_t n, const NUM *x, NUM *y)     \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            NUM a = y[i], b = x[i];                                            \
            y[i] = (formula);                                                  \
        }                                                                      \
    }                                                                          \
    FL_CLONES static NUM FN(name##_run)(int64_t n, const NUM *x)               \
    {                                                                          \
        NUM lane[FN(LANES)], a;                                                \
        int64_t i = 0;                                                         \
        for (int j = 0; j < FN(LANES); j++)                                    \
            lane[j] = (first);                                                 \
        for (; i + FN(LANES) <= n; i += FN(LANES))                             \
            for (int j = 0; j < FN(LANES); j++) {                              \
                NUM b = x[i + j];                                              \
                a = lane[j];                                                   \
                lane[j] = (formula);                                           \
            }                                                                  \
        for (int j = 0; i < n; i++, j++) {                                     \
            NUM b = x[i];                                                      \
            a = lane[j];                                                       \
            lane[j] = (formula);                                               \
        }                                                                      \
        a = lane[0];                                                           \
        for (int j = 1; j < FN(LANES); j++) {                                  \
            NUM b = lane[j];                                                   \
            a = (formula);                                                     \
        }                                                                      \
        return a;                                                              \
    }                                                                          \
    static const FN(fold) FN(name) = {first, FN(name##_run), FN(name##_into)};

#ifdef REAL
#define LOWEST  -INFINITY
#define HIGHEST INFINITY
#else
#define HIGHEST ((NUM)(((uint64_t)1 << (8 * sizeof(NUM) - 1)) - 1))
#define LOWEST  (-HIGHEST - 1)
#endif

FOLD(add, 0, (NUM)((WRAP)a + (WRAP)b))
FOLD(multiply, 1, (NUM)((WRAP)a *(WRAP)b))
FOLD(largest, LOWEST, a > b || a != a ? a : b)
FOLD(smallest, HIGHEST, a < b || a != a ? a : b)

#undef LOWEST
#undef HIGHEST
#undef FOLD

static void FN(reduce)(const fl_call *c, FN(fold) f)
{
    const NUM *x = fl_in(c, "X")->data;
    NUM *y = fl_out(c, "Out")->data;
    fl_box b = box_of(c);
    for (int64_t i = 0, n = fl_tensor_numel(fl_out(c, "Out")); i < n; i++)
        y[i] = f.start;
    if (!fl_numel(c, "X"))
        return;
    int64_t n = b.rank ? b.dim[b.rank - 1] : 1;
    bool fold = b.rank && !b.to[b.rank - 1];
    do {
        NUM run = fold ? f.run(n, x + b.from_at) : 0;
        f.into(fold ? 1 : n, fold ? &run : x + b.from_at, y + b.to_at);
    } while (fl_box_next(&b));
}

#ifdef REAL

/* Add a block of rows to its sum, and clear the block. */
static void FN(end_block)(int64_t n, REAL *block, double *sum)
{
    FN(fl_add_wide)(n, block, sum);
    memset(block, 0, (size_t)n * sizeof *block);
}

/* Add rows of n elements to `sum`. */
static void FN(add_rows)(fl_box b, int64_t n, const REAL *x, REAL *block,
                         double *sum)
{
    int64_t at = 0, rows = 0; /* offset of the sum; rows in its block so far */
    memset(block, 0, (size_t)n * sizeof *block);
    do {
        if (rows == ROWS || b.to_at != at) {
            FN(end_block)(n, block, sum + at);
            rows = 0;
        }
        at = b.to_at;
        FN(fl_add)(n, x + b.from_at, block);
        rows++;
    } while (fl_box_next(&b));
    FN(end_block)(n, block, sum + at);
}

static void FN(add_runs)(fl_box b, int64_t n, const REAL *x, double *sum)
{
    do {
        sum[b.to_at] += FN(fl_sum)(n, x + b.from_at);
    } while (fl_box_next(&b));
}

/* Sums of many elements are made of blocks, whose sums are added up as doubles:
 * adding a small float to a large one loses its low bits. */
static fl_err FN(add_many)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data;
    REAL *y = fl_out(c, "Out")->data;
    const fl_box b = box_of(c);
    const int64_t m = fl_tensor_numel(fl_out(c, "Out"));
    const int64_t n =
        b.dim[b.rank - 1]; /* X has elements, so it has dimensions */
    double *sum = fl_scratch(c, m, sizeof *sum + sizeof *y);
    if (!sum)
        return FL_ENOMEM;
    memset(sum, 0, (size_t)m * sizeof *sum);
    if (b.to[b.rank - 1])
        FN(add_rows)(b, n, x, (REAL *)(sum + m), sum); /* n <= m */
    else
        FN(add_runs)(b, n, x, sum);
    for (int64_t i = 0; i < m; i++)
        y[i] = (REAL)sum[i];
    return FL_OK;
}

#endif

static fl_err FN(reduce_sum)(fl_call *c)
{
#ifdef REAL
    const int64_t m = fl_tensor_numel(fl_out(c, "Out"));
    if (m && fl_numel(c, "X") / m > MANY)
        return FN(add_many)(c);
#endif
    FN(reduce)(c, FN(add));
    return FL_OK;
}

static fl_err FN(reduce_mean)(fl_call *c)
{
    NUM *y = fl_out(c, "Out")->data;
    int64_t m = fl_tensor_numel(fl_out(c, "Out"));
    FL_TRY(FN(reduce_sum)(c));
    if (fl_numel(c, "X"))
        for (int64_t i = 0; i < m; i++)
            y[i] /= (NUM)(fl_numel(c, "X") / m);
    return FL_OK;
}

static fl_err FN(reduce_max)(fl_call *c)
{
    FN(reduce)(c, FN(largest));
    return FL_OK;
}

static fl_err FN(reduce_min)(fl_call *c)
{
    FN(reduce)(c, FN(smallest));
    return FL_OK;
}

static fl_err FN(reduce_prod)(fl_call *c)
{
    FN(reduce)(c, FN(multiply));
    return FL_OK;
}

#ifdef REAL

typedef void FN(slope)(int64_t n, REAL count, const REAL *x, const REAL *y,
                       const REAL *dy, int64_t step, REAL *dx);

/* d is Out@GRAD; d and y move by `step`: 1, or 0 if x was reduced. */
#define SLOPE(name, formula)                                                   \
    static void FN(name##_slope)(int64_t n, REAL count, const REAL *px,        \
                                 const REAL *py, const REAL *dy, int64_t step, \
                                 REAL *dx)                                     \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            REAL x = px[i], y = py[i * step], d = dy[i * step];                \
            (void)x, (void)y;                                                  \
            dx[i] = (formula);                                                 \
        }                                                                      \
    }

SLOPE(sum, d)
SLOPE(mean, d / count)
SLOPE(extreme, x == y ? d : 0)
SLOPE(prod, (d * y / x))

#undef SLOPE

static fl_err FN(backward)(const fl_call *c, const char *out, FN(slope) * f)
{
    const REAL *x = fl_in(c, "X")->data, *y = fl_in(c, out)->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    if (!dx || !fl_numel(c, "X"))
        return FL_OK;
    fl_box b = box_of(c);
    int64_t n = b.rank ? b.dim[b.rank - 1] : 1;
    int64_t step = b.rank ? b.to[b.rank - 1] : 1;
    REAL count = fl_numel(c, "X") / fl_numel(c, "Out@GRAD");
    do {
        f(n, count, x + b.from_at, y + b.to_at, dy + b.to_at, step,
          (REAL *)dx->data + b.from_at);
    } while (fl_box_next(&b));
    return FL_OK;
}

/* sum and mean do not read Out, so Out@GRAD is passed in its place. */
static fl_err FN(reduce_sum_grad)(fl_call *c)
{
    return FN(backward)(c, "Out@GRAD", FN(sum_slope));
}

static fl_err FN(reduce_mean_grad)(fl_call *c)
{
    return FN(backward)(c, "Out@GRAD", FN(mean_slope));
}

static fl_err FN(reduce_extreme_grad)(fl_call *c)
{
    return FN(backward)(c, "Out", FN(extreme_slope));
}

static fl_err FN(reduce_prod_grad)(fl_call *c)
{
    return FN(backward)(c, "Out", FN(prod_slope));
}

#endif

#else

FL_NUMBER_KERNEL(reduce_sum)
FL_NUMBER_KERNEL(reduce_mean)
FL_NUMBER_KERNEL(reduce_max)
FL_NUMBER_KERNEL(reduce_min)
FL_NUMBER_KERNEL(reduce_prod)
FL_REAL_KERNEL(reduce_sum_grad)
FL_REAL_KERNEL(reduce_mean_grad)
FL_REAL_KERNEL(reduce_extreme_grad)
FL_REAL_KERNEL(reduce_prod_grad)

static fl_err reduced_shape(const fl_infer *x, fl_shape *out, bool *rows_stay)
{
    const fl_shape *in = &fl_meta_in(x, "X", 0)->shape;
    bool gone[FL_MAX_RANK], keep = fl_meta_attr(x, "keep_dim")->b;
    const fl_attr *dim = fl_meta_attr(x, "dim");
    for (int i = 0; i < dim->n; i++) {
        int axis;
        FL_TRY(fl_move_axis(x, "X", dim->longs[i], in->rank, &axis));
    }
    mark(in->rank, dim, fl_meta_attr(x, "reduce_all")->b, gone);
    *out = (fl_shape){0};
    for (int i = 0; i < in->rank; i++)
        if (!gone[i] || keep)
            out->dim[out->rank++] = gone[i] ? 1 : in->dim[i];
    if (!out->rank)
        out->dim[out->rank++] = 1;
    *rows_stay = in->rank && !gone[0];
    return FL_OK;
}

static fl_err infer_of(fl_infer *x)
{
    fl_shape shape;
    bool rows_stay;
    FL_TRY(reduced_shape(x, &shape, &rows_stay));
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &shape);
    if (rows_stay)
        fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    return infer_of(x);
}

/* An empty X has a sum and a product, but neither a mean nor a largest element.
 */
static fl_err infer_some(fl_infer *x)
{
    fl_shape out;
    bool rows_stay;
    FL_TRY(infer(x));
    FL_TRY(reduced_shape(x, &out, &rows_stay));
    return fl_shape_numel(&out) ? fl_meta_not_empty(x, "X") : FL_OK;
}

/* --- bools --- */

/* start: the result if no element of X contradicts it. */
static fl_err reduce_bools(const fl_call *c, bool start)
{
    const bool *x = fl_in(c, "X")->data;
    fl_tensor *y = fl_out(c, "Out");
    fl_box b = box_of(c);
    memset(y->data, start, fl_tensor_bytes(y));
    if (!fl_numel(c, "X"))
        return FL_OK;
    const int last = b.rank - 1;
    const int64_t n = b.rank ? b.dim[last] : 1;
    const int64_t to = b.rank ? b.to[last] : 1,
                  from = b.rank ? b.from[last] : 1;
    do {
        bool *at = (bool *)y->data + b.to_at;
        for (int64_t i = 0; i < n; i++)
            if (x[b.from_at + i * from] != start)
                at[i * to] = !start;
    } while (fl_box_next(&b));
    return FL_OK;
}

static fl_err reduce_all(fl_call *c)
{
    return reduce_bools(c, true);
}

static fl_err reduce_any(fl_call *c)
{
    return reduce_bools(c, false);
}

static fl_err infer_bools(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_SET(FL_BOOL)));
    return infer_of(x);
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *dx = fl_meta_out(x, "X@GRAD", 0);
    fl_shape shape;
    bool rows_stay;
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    FL_TRY(reduced_shape(x, &shape, &rows_stay));
    FL_TRY(fl_meta_expect(x, "Out@GRAD", in->dtype, &shape));
    if (fl_op_slot_in(x->def, "Out") >= 0)
        FL_TRY(fl_meta_expect(x, "Out", in->dtype, &shape));
    if (dx)
        *dx = *in;
    return FL_OK;
}

#define ATTRS                                                                  \
    {                                                                          \
        {"dim", FL_ATTR_INTS, .n = 1, .longs = (const int64_t[]){0}},          \
            {"keep_dim", FL_ATTR_BOOL},                                        \
        {                                                                      \
            "reduce_all", FL_ATTR_BOOL                                         \
        }                                                                      \
    }

#define REDUCE(name, rule, grad, ...)                                          \
    const fl_op_def fl_op_reduce_##name = {                                    \
        .type = "reduce_" #name,                                               \
        .in = {{"X"}},                                                         \
        .out = {{"Out"}},                                                      \
        .attr = ATTRS,                                                         \
        .infer = rule,                                                         \
        .run = reduce_##name,                                                  \
        .grad_in = {__VA_ARGS__, "Out@GRAD"},                                  \
        .grad_run = reduce_##grad##_grad,                                      \
        .grad_infer = infer_grad,                                              \
    };

REDUCE(sum, infer, sum, "X")
REDUCE(mean, infer_some, mean, "X")
REDUCE(max, infer_some, extreme, "X", "Out")
REDUCE(min, infer_some, extreme, "X", "Out")
REDUCE(prod, infer, prod, "X", "Out")

#define REDUCE_BOOLS(name)                                                     \
    const fl_op_def fl_op_reduce_##name = {                                    \
        .type = "reduce_" #name,                                               \
        .in = {{"X", FL_NOGRAD}},                                              \
        .out = {{"Out"}},                                                      \
        .attr = ATTRS,                                                         \
        .infer = infer_bools,                                                  \
        .run = reduce_##name,                                                  \
    };

REDUCE_BOOLS(all)
REDUCE_BOOLS(any)

#endif
