/* SPDX-License-Identifier: Apache-2.0 */
/* momentum  VelocityOut = mu * Velocity + Grad
 *           ParamOut    = Param - LearningRate * VelocityOut
 * nesterov  ParamOut    = Param - LearningRate * (Grad + mu * VelocityOut) */
#define FL_SELF "ops/momentum.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(plain)(int64_t n, REAL *p, const REAL *g, REAL *v,
                                REAL lr, REAL mu)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + g[i];
        p[i] -= lr * v[i];
    }
}

FL_CLONES static void FN(nesterov)(int64_t n, REAL *p, const REAL *g, REAL *v,
                                   REAL lr, REAL mu)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + g[i];
        p[i] -= lr * (g[i] + mu * v[i]);
    }
}

static void FN(momentum)(int64_t n, REAL *p, const REAL *g, REAL *const *state,
                         const fl_hyper *h)
{
    if (h->nesterov)
        FN(nesterov)(n, p, g, state[0], (REAL)h->lr, (REAL)h->mu);
    else
        FN(plain)(n, p, g, state[0], (REAL)h->lr, (REAL)h->mu);
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->mu = fl_rule_attr(s, "mu");
    h->nesterov = fl_rule_attr(s, "use_nesterov") != 0;
}

static const fl_rule rule = {
    .state = {{"Velocity", "VelocityOut"}},
    .decays = true,
    .prepare = prepare,
    .f32 = momentum_f32,
    .f64 = momentum_f64,
};

const fl_op_def fl_op_momentum = {
    .type = "momentum",
    .in = {{"Param"}, {"Grad"}, {"Velocity"}, {"LearningRate"}},
    .out = {{"ParamOut"}, {"VelocityOut"}},
    .attr = {{"mu", FL_ATTR_FLOAT, .required = true},
             {"use_nesterov", FL_ATTR_BOOL}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
