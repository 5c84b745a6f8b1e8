/* SPDX-License-Identifier: Apache-2.0 */
/* elementwise.c - Out = X op Y, element by element, Y broadcast into X.
 *
 * X is [pre, n, post] and Y has the n elements (fl_fit). A map is one formula
 * as two loops: `many` where y moves along with x, `one` where it stands still.
 * In a formula a is x (or, for div's gradient, Out), b is y, d is Out@GRAD.
 * Y@GRAD is summed over pre and post in a fixed order. */
#define FL_SELF "ops/elementwise.c"
#include "kernel/rows.h"
#include "op/number.h"

#include <string.h>
#ifdef NUM

typedef void FN(loop)(int64_t n, const NUM *x, const NUM *y, const NUM *dz,
                      NUM *z);

typedef struct FN(map) {
    FN(loop) * many, *one;
} FN(map);

#define MAP(name, formula)                                                     \
    FL_CLONES static void FN(name##_many)(int64_t n, const NUM *x,             \
                                          const NUM *y, const NUM *dz, NUM *z) \
    {                                                                          \
        FL_APART                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            NUM a = x[i], b = y[i], d = dz[i];                                 \
            (void)a, (void)b, (void)d;                                         \
            z[i] = (formula);                                                  \
        }                                                                      \
    }                                                                          \
    FL_CLONES static void FN(name##_one)(int64_t n, const NUM *x,              \
                                         const NUM *y, const NUM *dz, NUM *z)  \
    {                                                                          \
        NUM b = *y;                                                            \
        (void)b;                                                               \
        FL_APART                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            NUM a = x[i], d = dz[i];                                           \
            (void)a, (void)d;                                                  \
            z[i] = (formula);                                                  \
        }                                                                      \
    }                                                                          \
    static const FN(map) FN(name##_map) = {FN(name##_many), FN(name##_one)};

#ifdef REAL

static inline NUM FN(quotient)(NUM a, NUM b)
{
    return a / b;
}

static inline NUM FN(floored)(NUM a, NUM b)
{
    return RM(floor)(a / b);
}

static inline NUM FN(remainder)(NUM a, NUM b)
{
    return RM(fmod)(a, b);
}

static inline NUM FN(power)(NUM a, NUM b)
{
    return RM(pow)(a, b);
}

#else

/* The lowest number divided by -1 wraps around; the processor would trap. */
static inline NUM FN(quotient)(NUM a, NUM b)
{
    return b == -1 ? (NUM)(0 - (uint64_t)a) : a / b;
}

static inline NUM FN(remainder)(NUM a, NUM b)
{
    return b == -1 ? 0 : a % b;
}

static inline NUM FN(floored)(NUM a, NUM b)
{
    NUM r = FN(remainder)(a, b);
    return FN(quotient)(a, b) - (r != 0 && (r < 0) != (b < 0));
}

static inline NUM FN(power)(NUM a, NUM b)
{
    return (NUM)fl_whole_pow(a, b);
}

#endif

/* The remainder has the sign of b, as in Python. */
static inline NUM FN(modulo)(NUM a, NUM b)
{
    NUM r = FN(remainder)(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

MAP(add, (NUM)((WRAP)a + (WRAP)b))
MAP(sub, (NUM)((WRAP)a - (WRAP)b))
MAP(mul, (NUM)((WRAP)a *(WRAP)b))
MAP(div, FN(quotient)(a, b))
MAP(max, a > b ? a : b)
MAP(min, a < b ? a : b)
MAP(mod, FN(modulo)(a, b))
MAP(floordiv, FN(floored)(a, b))
MAP(pow, FN(power)(a, b))

static void FN(spread)(FN(map) m, fl_fit f, const NUM *x, const NUM *y,
                       const NUM *d, NUM *z)
{
    if (f.n == 1) {
        m.one(f.pre * f.post, x, y, d, z);
        return;
    }
    if (f.post == 1)
        for (int64_t at = 0; at < f.pre * f.n; at += f.n)
            m.many(f.n, x + at, y, d + at, z + at);
    else
        for (int64_t i = 0, at = 0; i < f.pre * f.n; i++, at += f.post)
            m.one(f.post, x + at, y + i % f.n, d + at, z + at);
}

static fl_fit FN(fit)(const fl_call *c, const char *x)
{
    return fl_fit_of(&fl_in(c, x)->shape, &fl_in(c, "Y")->shape,
                     fl_attr_i64(c, "axis"));
}

static fl_err FN(forward)(fl_call *c, FN(map) m)
{
    const NUM *x = fl_in(c, "X")->data, *y = fl_in(c, "Y")->data;
    if (fl_numel(c, "X"))
        FN(spread)(m, FN(fit)(c, "X"), x, y, x, fl_out(c, "Out")->data);
    return FL_OK;
}

/* Selected rows are multiplied by a number, so that a sparse gradient can be
 * clipped by a global norm. */
static fl_err FN(product)(fl_call *c, FN(map) m)
{
    const fl_tensor *x;
    fl_tensor *z;
    if (fl_in_value(c, "X", 0)->kind != FL_SELECTED_ROWS)
        return FN(forward)(c, m);
    FL_TRY(fl_rows_pair(c, &x, &z));
    m.one(fl_tensor_numel(x), x->data, fl_in(c, "Y")->data, x->data, z->data);
    return FL_OK;
}

/* Integers have no infinity: division by zero is an error. */
static fl_err FN(divide)(fl_call *c, FN(map) m)
{
#ifndef REAL
    const NUM *y = fl_in(c, "Y")->data;
    for (int64_t i = 0, n = fl_numel(c, "Y"); i < n; i++)
        if (!y[i])
            return fl_fail(FL_EINVAL, "%s: Y[%lld] is 0", c->def->type,
                           (long long)i);
#endif
    return FN(forward)(c, m);
}

/* Integers have no fractions, so a negative power is an error. */
static fl_err FN(raise)(fl_call *c, FN(map) m)
{
#ifndef REAL
    const NUM *y = fl_in(c, "Y")->data;
    for (int64_t i = 0, n = fl_numel(c, "Y"); i < n; i++)
        if (y[i] < 0)
            return fl_fail(FL_EINVAL,
                           "%s: Y[%lld] is %lld: a whole number has no "
                           "negative power",
                           c->def->type, (long long)i, (long long)y[i]);
#endif
    return FN(forward)(c, m);
}

#define RUN(name, via)                                                         \
    static fl_err FN(name##_run)(fl_call * c)                                  \
    {                                                                          \
        return FN(via)(c, FN(name##_map));                                     \
    }

RUN(add, forward)
RUN(sub, forward)
RUN(mul, product)
RUN(div, divide)
RUN(max, forward)
RUN(min, forward)
RUN(mod, divide)
RUN(floordiv, divide)
RUN(pow, raise)

#ifdef REAL

MAP(pass, d)
MAP(negate, -d)
MAP(mul_dx, (d * b))
MAP(mul_dy, (d * a))
MAP(div_dx, d / b)
MAP(div_dy, (-d * a / b))
MAP(max_dx, a > b ? d : 0)
MAP(max_dy, a > b ? 0 : d)
MAP(min_dx, a < b ? d : 0)
MAP(min_dy, a < b ? 0 : d)
MAP(pow_dx, (d * b * RM(pow)(a, b - 1)))
MAP(pow_dy, (d * RM(log)(a) * RM(pow)(a, b)))

enum {
    FN(CHUNK) = 256 /* elements that are mapped, then summed, while they are in
                       the cache */
};

/* dy[j] = sum of row[p][j] over p, where row is the map of d. */
static void FN(sum_rows)(FN(map) m, fl_fit f, const REAL *x, const REAL *y,
                         const REAL *d, REAL *dy)
{
    const bool maps =
        m.many != FN(pass_many); /* for a bias the map is the identity */
    REAL part[FN(CHUNK)];
    double total[FN(CHUNK)];
    for (int64_t j = 0, k; j < f.n; j += k) {
        k = f.n - j < FN(CHUNK) ? f.n - j : FN(CHUNK);
        FN(fl_rows_clear)(k, dy + j, total);
        for (int64_t p = 0; p < f.pre; p++) {
            const int64_t at = p * f.n + j;
            if (maps)
                m.many(k, x + at, y + j, d + at, part);
            FN(fl_add)(k, maps ? part : d + at, dy + j);
            FN(fl_rows_added)(k, p, f.pre, dy + j, total);
        }
    }
}

/* The same if `post` consecutive elements belong to one y. */
static void FN(sum_runs)(FN(map) m, fl_fit f, const REAL *x, const REAL *y,
                         const REAL *d, REAL *dy)
{
    REAL part[FN(CHUNK)];
    for (int64_t i = 0; i < f.n; i++) {
        double sum = 0;
        for (int64_t p = 0; p < f.pre; p++)
            for (int64_t j = 0, k; j < f.post; j += k) {
                const int64_t at = (p * f.n + i) * f.post + j;
                k = f.post - j < FN(CHUNK) ? f.post - j : FN(CHUNK);
                m.one(k, x + at, y + i, d + at, part);
                sum += FN(fl_sum)(k, part);
            }
        dy[i] = (REAL)sum;
    }
}

static void FN(fold)(FN(map) m, fl_fit f, const REAL *x, const REAL *y,
                     const REAL *d, REAL *dy)
{
    memset(dy, 0, (size_t)f.n * sizeof *dy);
    if (f.n == 1)
        f = (fl_fit){1, 1, f.pre * f.post};
    if (!f.post) /* x has no elements */
        return;
    if (f.post > 1)
        FN(sum_runs)(m, f, x, y, d, dy);
    else
        FN(sum_rows)(m, f, x, y, d, dy);
}

/* `a` is the slot that formulas call a. */
static fl_err FN(backward)(fl_call *c, const char *a, FN(map) to_x,
                           FN(map) to_y)
{
    const REAL *x = fl_in(c, a)->data, *y = fl_in(c, "Y")->data;
    const REAL *d = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD"), *dy = fl_out(c, "Y@GRAD");
    fl_fit f = FN(fit)(c, a);
    if (dy)
        FN(fold)(to_y, f, x, y, d, dy->data);
    const bool done = dx && dx->data == d && to_x.many == FN(pass_many);
    if (dx && fl_numel(c, a) && !done)
        FN(spread)(to_x, f, x, y, d, dx->data);
    return FL_OK;
}

#define GRAD(name, a, to_x, to_y)                                              \
    static fl_err FN(name##_grad)(fl_call * c)                                 \
    {                                                                          \
        return FN(backward)(c, a, FN(to_x##_map), FN(to_y##_map));             \
    }

GRAD(add, "X", pass, pass)
GRAD(sub, "X", pass, negate)
GRAD(mul, "X", mul_dx, mul_dy)
GRAD(div, "Out", div_dx, div_dy)
GRAD(max, "X", max_dx, max_dy)
GRAD(min, "X", min_dx, min_dy)
GRAD(pow, "X", pow_dx, pow_dy)

#undef GRAD
#endif
#undef RUN
#undef MAP

#else

static fl_err infer_number(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    return fl_infer_broadcast(x);
}

static fl_err infer_product(fl_infer *x)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    char s[FL_SHAPE_TEXT];
    if (a->kind != FL_SELECTED_ROWS)
        return infer_number(x);
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS));
    FL_TRY(fl_meta_check(x, "Y", FL_NUMBERS));
    if (a->dtype != b->dtype || fl_shape_numel(&b->shape) != 1)
        return fl_fail(FL_ESHAPE,
                       "%s: X is selected rows of %s, Y is %s%s, expected one "
                       "element of the same type",
                       fl_meta_type(x), fl_dtype_name(a->dtype),
                       fl_dtype_name(b->dtype), fl_shape_text(&b->shape, s));
    return fl_infer_same(x);
}

static fl_err infer_grad(fl_infer *x)
{
    const char *a = fl_op_slot_in(x->def, "X") >= 0 ? "X" : "Out";
    fl_meta *dx = fl_meta_out(x, "X@GRAD", 0);
    fl_meta *dy = fl_meta_out(x, "Y@GRAD", 0);
    FL_TRY(fl_meta_check(x, a, FL_REALS));
    FL_TRY(fl_meta_alike(x, a, "Out@GRAD"));
    FL_TRY(fl_meta_fit(x, a, "Y", fl_meta_attr(x, "axis")->i));
    if (dx)
        *dx = *fl_meta_in(x, a, 0);
    if (dy)
        *dy = *fl_meta_in(x, "Y", 0);
    return FL_OK;
}

FL_NUMBER_KERNEL(add_run)
FL_NUMBER_KERNEL(sub_run)
FL_NUMBER_KERNEL(mul_run)
FL_NUMBER_KERNEL(div_run)
FL_NUMBER_KERNEL(max_run)
FL_NUMBER_KERNEL(min_run)
FL_NUMBER_KERNEL(mod_run)
FL_NUMBER_KERNEL(floordiv_run)
FL_NUMBER_KERNEL(pow_run)

FL_REAL_KERNEL(add_grad)
FL_REAL_KERNEL(sub_grad)
FL_REAL_KERNEL(mul_grad)
FL_REAL_KERNEL(div_grad)
FL_REAL_KERNEL(max_grad)
FL_REAL_KERNEL(min_grad)
FL_REAL_KERNEL(pow_grad)

#define ELEMENTWISE(name, infer_rule, reads, ...)                              \
    const fl_op_def fl_op_elementwise_##name = {                               \
        .type = "elementwise_" #name,                                          \
        .in = {{"X", reads}, {"Y", reads}},                                    \
        .out = {{"Out"}},                                                      \
        .attr = {{"axis", FL_ATTR_INT, .i = -1}},                              \
        .flags = FL_OP_IN_PLACE | FL_OP_GRAD_IN_PLACE | FL_OP_BY_ELEMENT,      \
        .infer = infer_rule,                                                   \
        .run = name##_run,                                                     \
        __VA_ARGS__};

/* The inputs of the gradient; Fluid's div does not read X. */
#define GRAD_OF(name, ...)                                                     \
    .grad_in = {__VA_ARGS__, "Out@GRAD"}, .grad_run = name##_grad,             \
    .grad_infer = infer_grad

ELEMENTWISE(add, infer_number, FL_GRAD_UNREAD, GRAD_OF(add, "X", "Y"))
ELEMENTWISE(sub, infer_number, FL_GRAD_UNREAD, GRAD_OF(sub, "X", "Y"))
ELEMENTWISE(mul, infer_product, 0, GRAD_OF(mul, "X", "Y"))
ELEMENTWISE(div, infer_number, 0, GRAD_OF(div, "Y", "Out"))
ELEMENTWISE(max, infer_number, 0, GRAD_OF(max, "X", "Y"))
ELEMENTWISE(min, infer_number, 0, GRAD_OF(min, "X", "Y"))
ELEMENTWISE(pow, infer_number, 0, GRAD_OF(pow, "X", "Y"))
ELEMENTWISE(mod, infer_number, 0, .grad_run = NULL)
ELEMENTWISE(floordiv, infer_number, 0, .grad_run = NULL)

#endif
