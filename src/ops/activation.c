/* SPDX-License-Identifier: Apache-2.0 */
/* activation.c - functions of one number, element by element.
 *
 * A row gives the formula of Out in x, what the gradient reads (x, or y where
 * Out is enough) and the formula of X@GRAD in that and in d, which is
 * Out@GRAD. a, b and c are the operator's attributes in their order. */
#define FL_SELF "ops/activation.c"
#include "op/real.h"
#include "op/vecmath.h"
#ifdef REAL

#define EXP     FN(fl_exp)
#define LOG     FN(fl_log)
#define TANH    FN(fl_tanh)
#define SIGMOID FN(fl_sigmoid)

#define ROW(name, out, reads, grad)                                            \
    FL_CLONES static void FN(name##_map)(int64_t n, REAL a, REAL b, REAL c,    \
                                         const REAL *from, REAL *to)           \
    {                                                                          \
        FL_APART                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            REAL x = from[i];                                                  \
            to[i] = (out);                                                     \
        }                                                                      \
    }                                                                          \
    FL_CLONES static void FN(name##_grad_map)(int64_t n, REAL a, REAL b,       \
                                              REAL c, const REAL *from,        \
                                              const REAL *dout, REAL *to)      \
    {                                                                          \
        FL_APART                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            REAL d = dout[i], reads = from[i];                                 \
            (void)reads; /* a slope of zero reads nothing */                   \
            to[i] = (grad);                                                    \
        }                                                                      \
    }

/* log(1 + e^x) that does not overflow. */
static inline REAL FN(log1p_exp)(REAL x)
{
    REAL most = x > 0 ? x : 0;
    return most + LOG(EXP(-most) + EXP(x - most));
}

static inline REAL FN(swish_slope)(REAL x, REAL beta)
{
    REAL s = SIGMOID(beta * x);
    return s + beta * x * s * (1 - s);
}

/* The slope of x * limit(x + offset, 0, most). */
static inline REAL FN(hard_swish_slope)(REAL x, REAL most, REAL offset)
{
    REAL gate = x + offset;
    return gate <= 0 ? 0 : gate >= most ? most : x + gate;
}

static inline REAL FN(square_of)(REAL x)
{
    return x * x;
}

static inline REAL FN(limit)(REAL x, REAL least, REAL most)
{
    x = x < least ? least : x;
    return x > most ? most : x;
}

/* clang-format off */
ROW(abs,         RM(fabs)(x),               x, x > 0 ? d : x < 0 ? -d : 0)
ROW(acos,        RM(acos)(x),               x, -d / RM(sqrt)(1 - x * x))
ROW(asin,        RM(asin)(x),               x, d / RM(sqrt)(1 - x * x))
ROW(atan,        RM(atan)(x),               x, d / (1 + x * x))
ROW(brelu,       FN(limit)(x, a, b),        x, x > a && x < b ? d : 0)
ROW(ceil,        RM(ceil)(x),               x, 0 * d)
ROW(cos,         RM(cos)(x),                x, -d * RM(sin)(x))
ROW(elu,         x > 0 ? x : a * (EXP(x) - 1), x, x > 0 ? d : d * a * EXP(x))
ROW(exp,         EXP(x),                    y, d * y)
ROW(floor,       RM(floor)(x),              x, 0 * d)
ROW(hard_shrink, x > a || x < -a ? x : 0,   x, x > a || x < -a ? d : 0)
ROW(hard_sigmoid, FN(limit)(a * x + b, 0, 1), y, y > 0 && y < 1 ? d * a : 0)
ROW(hard_swish,  x * FN(limit)(x + c, 0, a) / b,
                                            x, d *
                                               FN(hard_swish_slope)(x, a, c) / b)
ROW(leaky_relu,  x > 0 ? x : a * x,         x, x > 0 ? d : a * d)
ROW(log,         LOG(x),                    x, d / x)
ROW(logsigmoid,  -FN(log1p_exp)(-x),        x, d * SIGMOID(-x))
ROW(reciprocal,  1 / x,                     y, -d * y * y)
ROW(relu,        x < 0 ? 0 : x,             y, y > 0 ? d : 0)
ROW(relu6,       FN(limit)(x, 0, a),        y, y > 0 && y < a ? d : 0)
ROW(round,       RM(round)(x),              x, 0 * d)
ROW(rsqrt,       1 / RM(sqrt)(x),           y, -d * y * y * y / 2)
ROW(selu,        x > 0 ? a * x : a * b * (EXP(x) - 1),
                                            y, y > 0 ? d * a : d * (y + a * b))
ROW(sigmoid,     SIGMOID(x),                y, d * y * (1 - y))
ROW(sin,         RM(sin)(x),                x, d * RM(cos)(x))
ROW(soft_relu,   LOG(1 + EXP(FN(limit)(x, -a, a))),
                                            y, y > -a && y < a ?
                                                   d * (1 - EXP(-y)) : 0)
ROW(softplus,    FN(log1p_exp)(x),          x, d * SIGMOID(x))
ROW(softshrink,  x > a ? x - a : x < -a ? x + a : 0,
                                            x, x > a || x < -a ? d : 0)
ROW(softsign,    x / (1 + RM(fabs)(x)),     x, d /
                                               FN(square_of)(1 + RM(fabs)(x)))
ROW(sqrt,        RM(sqrt)(x),               y, d / (2 * y))
ROW(square,      x * x,                     x, 2 * d * x)
ROW(stanh,       b * TANH(a * x),           x, d * a * b *
                                               (1 - FN(square_of)(TANH(a * x))))
ROW(swish,       x * SIGMOID(a * x),        x, d * FN(swish_slope)(x, a))
ROW(tanh,        TANH(x),                   y, d * (1 - y * y))
ROW(tanh_shrink, x - TANH(x),               x, d * FN(square_of)(TANH(x)))
ROW(thresholded_relu, x > a ? x : 0,        x, x > a ? d : 0)
/* clang-format on */

#undef ROW
#undef EXP
#undef LOG
#undef TANH
#undef SIGMOID

#else

typedef void map_f32(int64_t, float, float, float, const float *, float *);
typedef void map_f64(int64_t, double, double, double, const double *, double *);
typedef void grad_f32(int64_t, float, float, float, const float *,
                      const float *, float *);
typedef void grad_f64(int64_t, double, double, double, const double *,
                      const double *, double *);

static fl_err forward(const fl_call *c, map_f32 *single, map_f64 *wide)
{
    const fl_tensor *x = fl_in(c, "X");
    float p[] = {c->attr[0].f, c->attr[1].f, c->attr[2].f};
    if (x->dtype == FL_F64)
        wide(fl_tensor_numel(x), p[0], p[1], p[2], x->data,
             fl_out(c, "Out")->data);
    else
        single(fl_tensor_numel(x), p[0], p[1], p[2], x->data,
               fl_out(c, "Out")->data);
    return FL_OK;
}

/* The first input of the gradient is X or Out, whichever it reads. */
static fl_err backward(const fl_call *c, grad_f32 *single, grad_f64 *wide)
{
    const fl_tensor *from = &c->in[0][0]->tensor, *d = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    float p[] = {c->attr[0].f, c->attr[1].f, c->attr[2].f};
    if (!dx)
        return FL_OK;
    if (d->dtype == FL_F64)
        wide(fl_tensor_numel(d), p[0], p[1], p[2], from->data, d->data,
             dx->data);
    else
        single(fl_tensor_numel(d), p[0], p[1], p[2], from->data, d->data,
               dx->data);
    return FL_OK;
}

/* clang-format off */
#define F(name, value) {name, FL_ATTR_FLOAT, .f = value}
#define NONE {0}
#define AND(...) __VA_ARGS__ /* a second and a third */
/* clang-format on */

#define ACTIVATION(name, attr_a, attr_b, ...)                                  \
    static fl_err name##_run(fl_call *c)                                       \
    {                                                                          \
        return forward(c, name##_map_f32, name##_map_f64);                     \
    }                                                                          \
    static fl_err name##_grad_run(fl_call *c)                                  \
    {                                                                          \
        return backward(c, name##_grad_map_f32, name##_grad_map_f64);          \
    }                                                                          \
    const fl_op_def fl_op_##name = {                                           \
        .type = #name,                                                         \
        .in = {{"X"}},                                                         \
        .out = {{"Out"}},                                                      \
        .attr = {attr_a, attr_b},                                              \
        .flags = FL_OP_IN_PLACE | FL_OP_GRAD_IN_PLACE,                         \
        .infer = fl_infer_real,                                                \
        .run = name##_run,                                                     \
        .grad_in = {__VA_ARGS__},                                              \
        .grad_run = name##_grad_run,                                           \
        .grad_infer = fl_infer_grad_alike,                                     \
    };

/* clang-format off */
ACTIVATION(abs, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(acos, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(asin, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(atan, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(brelu, F("t_min", 0), F("t_max", 24), "X", "Out@GRAD")
ACTIVATION(ceil, NONE, NONE, "Out@GRAD")
ACTIVATION(cos, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(elu, F("alpha", 1), NONE, "X", "Out@GRAD")
ACTIVATION(exp, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(floor, NONE, NONE, "Out@GRAD")
ACTIVATION(hard_shrink, F("threshold", 0.5f), F("lambda", 0.5f), "X",
           "Out@GRAD") /* lambda is not read, as in Fluid */
ACTIVATION(hard_sigmoid, F("slope", 0.2f), F("offset", 0.5f), "Out", "Out@GRAD")
ACTIVATION(hard_swish, F("threshold", 6), AND(F("scale", 6), F("offset", 3)),
           "X", "Out@GRAD")
ACTIVATION(leaky_relu, F("alpha", 0.02f), NONE, "X", "Out@GRAD")
ACTIVATION(log, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(logsigmoid, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(reciprocal, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(relu, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(relu6, F("threshold", 6), NONE, "Out", "Out@GRAD")
ACTIVATION(round, NONE, NONE, "Out@GRAD")
ACTIVATION(rsqrt, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(selu, F("scale", 1.0507009873554805f),
           F("alpha", 1.6732632423543772f), "Out", "Out@GRAD")
ACTIVATION(sigmoid, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(sin, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(soft_relu, F("threshold", 40), NONE, "Out", "Out@GRAD")
ACTIVATION(softplus, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(softshrink, F("lambda", 0.5f), NONE, "X", "Out@GRAD")
ACTIVATION(softsign, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(sqrt, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(square, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(stanh, F("scale_a", 0.67f), F("scale_b", 1.7159f), "X", "Out@GRAD")
ACTIVATION(swish, F("beta", 1), NONE, "X", "Out@GRAD")
ACTIVATION(tanh, NONE, NONE, "Out", "Out@GRAD")
ACTIVATION(tanh_shrink, NONE, NONE, "X", "Out@GRAD")
ACTIVATION(thresholded_relu, F("threshold", 1), NONE, "X", "Out@GRAD")
/* clang-format on */

#endif
