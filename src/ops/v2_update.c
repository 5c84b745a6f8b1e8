/* SPDX-License-Identifier: Apache-2.0 */
/* v2_momentum, v2_adagrad, v2_decayed_adagrad, v2_adadelta, v2_rmsprop: the
 * updates of paddle.v2, which Fluid's operators compute in another way.
 *
 *     VelocityOut = mu * Velocity - LearningRate * r * (Grad + l2 * Param)
 *     ParamOut    = Param + VelocityOut
 *
 * The methods differ in r, the rate of an element:
 *
 *     v2_momentum          1
 *     v2_adagrad           1 / sqrt(s + epsilon), s += Grad^2
 *     v2_decayed_adagrad   1 / sqrt(s + epsilon), s = mean of Grad^2
 *     v2_rmsprop           1 / sqrt(s - f^2 + epsilon), f = mean of Grad
 *     v2_adadelta          sqrt((u + epsilon) / (s + epsilon)),
 *                          then u = mean of (Grad * r)^2
 *
 * A mean is rho * mean + (1 - rho) * new; s of v2_decayed_adagrad and
 * v2_rmsprop is all new in the first step, when RhoPow is rho. With l1 the step
 * has no l2; after it Param moves towards 0 by LearningRate * l1 and is divided
 * by 1 + LearningRate * l2.
 *
 * Sparse: rows that are not listed stay, except under v2_momentum. */
#define FL_SELF "ops/v2_update.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

/* Update one element with the rate r. */
static inline void FN(move)(REAL *p, REAL *v, REAL g, REAL r, const fl_hyper *h)
{
    *v = (REAL)h->mu * *v - (REAL)h->lr * r * (g + (REAL)h->weight_decay * *p);
    *p += *v;
}

FL_CLONES static void FN(shrink)(int64_t n, REAL *p, const fl_hyper *h)
{
    const REAL by = (REAL)(h->lr * h->l1), over = (REAL)(1 + h->lr * h->l2);
    for (int64_t i = 0; i < n; i++) {
        const REAL left = RM(fabs)(p[i]) - by;
        p[i] = (left > 0 ? RM(copysign)(left, p[i]) : 0) / over;
    }
}

FL_CLONES static void FN(momentum)(int64_t n, REAL *p, const REAL *g,
                                   REAL *const *state, const fl_hyper *h)
{
    for (int64_t i = 0; i < n; i++)
        FN(move)(&p[i], &state[0][i], g[i], 1, h);
    if (h->l1 > 0)
        FN(shrink)(n, p, h);
}

FL_CLONES static void FN(adagrad)(int64_t n, REAL *p, const REAL *g,
                                  REAL *const *state, const fl_hyper *h)
{
    const REAL eps = (REAL)h->epsilon;
    REAL *v = state[0], *s = state[1];
    for (int64_t i = 0; i < n; i++) {
        s[i] += g[i] * g[i];
        FN(move)(&p[i], &v[i], g[i], 1 / RM(sqrt)(s[i] + eps), h);
    }
    if (h->l1 > 0)
        FN(shrink)(n, p, h);
}

FL_CLONES static void FN(decayed)(int64_t n, REAL *p, const REAL *g,
                                  REAL *const *state, const fl_hyper *h)
{
    const REAL eps = (REAL)h->epsilon, old = (REAL)h->decay;
    REAL *v = state[0], *s = state[1];
    for (int64_t i = 0; i < n; i++) {
        s[i] = old * s[i] + (1 - old) * g[i] * g[i];
        FN(move)(&p[i], &v[i], g[i], 1 / RM(sqrt)(s[i] + eps), h);
    }
    if (h->l1 > 0)
        FN(shrink)(n, p, h);
}

FL_CLONES static void FN(rmsprop)(int64_t n, REAL *p, const REAL *g,
                                  REAL *const *state, const fl_hyper *h)
{
    const REAL eps = (REAL)h->epsilon;
    const REAL old_s = (REAL)h->decay, old_f = (REAL)h->beta1;
    REAL *v = state[0], *s = state[1], *f = state[2];
    for (int64_t i = 0; i < n; i++) {
        s[i] = old_s * s[i] + (1 - old_s) * g[i] * g[i];
        f[i] = old_f * f[i] + (1 - old_f) * g[i];
        FN(move)
        (&p[i], &v[i], g[i], 1 / RM(sqrt)(s[i] - f[i] * f[i] + eps), h);
    }
    if (h->l1 > 0)
        FN(shrink)(n, p, h);
}

FL_CLONES static void FN(adadelta)(int64_t n, REAL *p, const REAL *g,
                                   REAL *const *state, const fl_hyper *h)
{
    const REAL eps = (REAL)h->epsilon, old = (REAL)h->decay;
    REAL *v = state[0], *s = state[1], *u = state[2];
    for (int64_t i = 0; i < n; i++) {
        s[i] = old * s[i] + (1 - old) * g[i] * g[i];
        const REAL r = RM(sqrt)((u[i] + eps) / (s[i] + eps));
        u[i] = old * u[i] + (1 - old) * (g[i] * r) * (g[i] * r);
        FN(move)(&p[i], &v[i], g[i], r, h);
    }
    if (h->l1 > 0)
        FN(shrink)(n, p, h);
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->mu = fl_rule_attr(s, "mu");
    h->l1 = fl_rule_attr(s, "l1");
    h->l2 = fl_rule_attr(s, "l2");
    h->weight_decay = h->l1 > 0 ? 0 : h->l2;
}

static void prepare_sum(const fl_rule_step *s, fl_hyper *h)
{
    prepare(s, h);
    h->epsilon = fl_rule_attr(s, "epsilon");
}

static void prepare_mean(const fl_rule_step *s, fl_hyper *h)
{
    prepare_sum(s, h);
    h->decay = fl_rule_attr(s, "rho");
}

/* In the first step the mean of squares is the square itself; the mean of
 * gradients starts at 0. */
static void prepare_first(const fl_rule_step *s, fl_hyper *h)
{
    prepare_mean(s, h);
    h->beta1 = h->decay;
    if (s->power[0] >= h->decay)
        h->decay = 0;
}

#define VELOCITY                                                               \
    {                                                                          \
        "Velocity", "VelocityOut"                                              \
    }
#define SQUARE                                                                 \
    {                                                                          \
        "Square", "SquareOut"                                                  \
    }

static const fl_rule momentum_rule = {
    .state = {VELOCITY},
    .decays = true,
    .prepare = prepare,
    .f32 = momentum_f32,
    .f64 = momentum_f64,
};

static const fl_rule adagrad_rule = {
    .state = {VELOCITY, SQUARE},
    .prepare = prepare_sum,
    .f32 = adagrad_f32,
    .f64 = adagrad_f64,
};

static const fl_rule decayed_rule = {
    .state = {VELOCITY, SQUARE},
    .power = {{"RhoPow", "rho"}},
    .prepare = prepare_first,
    .f32 = decayed_f32,
    .f64 = decayed_f64,
};

static const fl_rule rmsprop_rule = {
    .state = {VELOCITY, SQUARE, {"MeanGrad", "MeanGradOut"}},
    .power = {{"RhoPow", "rho"}},
    .prepare = prepare_first,
    .f32 = rmsprop_f32,
    .f64 = rmsprop_f64,
};

static const fl_rule adadelta_rule = {
    .state = {VELOCITY, SQUARE, {"SquareUpdate", "SquareUpdateOut"}},
    .prepare = prepare_mean,
    .f32 = adadelta_f32,
    .f64 = adadelta_f64,
};

#define IN                                                                     \
    {"Param"}, {"Grad"}, {"LearningRate"},                                     \
    {                                                                          \
        "Velocity"                                                             \
    }
#define OUT                                                                    \
    {"ParamOut"},                                                              \
    {                                                                          \
        "VelocityOut"                                                          \
    }
#define ATTRS                                                                  \
    {"mu", FL_ATTR_FLOAT}, {"l2", FL_ATTR_FLOAT},                              \
    {                                                                          \
        "l1", FL_ATTR_FLOAT                                                    \
    }
#define EPSILON                                                                \
    {                                                                          \
        "epsilon", FL_ATTR_FLOAT, .f = 1e-6f                                   \
    }
#define RHO                                                                    \
    {                                                                          \
        "rho", FL_ATTR_FLOAT, .f = 0.95f                                       \
    }

const fl_op_def fl_op_v2_momentum = {
    .type = "v2_momentum",
    .in = {IN},
    .out = {OUT},
    .attr = {ATTRS},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &momentum_rule,
};

const fl_op_def fl_op_v2_adagrad = {
    .type = "v2_adagrad",
    .in = {IN, {"Square"}},
    .out = {OUT, {"SquareOut"}},
    .attr = {ATTRS, EPSILON},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &adagrad_rule,
};

const fl_op_def fl_op_v2_decayed_adagrad = {
    .type = "v2_decayed_adagrad",
    .in = {IN, {"Square"}, {"RhoPow"}},
    .out = {OUT, {"SquareOut"}},
    .attr = {ATTRS, EPSILON, RHO},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &decayed_rule,
};

const fl_op_def fl_op_v2_rmsprop = {
    .type = "v2_rmsprop",
    .in = {IN, {"Square"}, {"MeanGrad"}, {"RhoPow"}},
    .out = {OUT, {"SquareOut"}, {"MeanGradOut"}},
    .attr = {ATTRS, EPSILON, RHO},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rmsprop_rule,
};

const fl_op_def fl_op_v2_adadelta = {
    .type = "v2_adadelta",
    .in = {IN, {"Square"}, {"SquareUpdate"}},
    .out = {OUT, {"SquareOut"}, {"SquareUpdateOut"}},
    .attr = {ATTRS, EPSILON, RHO},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &adadelta_rule,
};

#endif
