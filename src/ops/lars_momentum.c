/* SPDX-License-Identifier: Apache-2.0 */
/* lars_momentum  step        = LearningRate * coeff * |Param|
 *                              / (|Grad| + decay * |Param|)
 *                              where both norms are above 0, else LearningRate
 *                VelocityOut = mu * Velocity + step * (Grad + decay * Param)
 *                ParamOut    = Param - VelocityOut
 *
 * The norms are those of the whole parameter: a slice alone would step
 * differently, so the rule is `whole`. */
#define FL_SELF "ops/lars_momentum.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(move)(int64_t n, REAL *p, const REAL *g, REAL *v,
                               REAL step, REAL decay, REAL mu)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + step * (g[i] + decay * p[i]);
        p[i] -= v[i];
    }
}

static void FN(lars)(int64_t n, REAL *p, const REAL *g, REAL *const *state,
                     const fl_hyper *h)
{
    const REAL decay = (REAL)h->weight_decay;
    const REAL norm_p = RM(sqrt)(FN(fl_dot)(n, p, p));
    const REAL norm_g = RM(sqrt)(FN(fl_dot)(n, g, g));
    REAL step = (REAL)h->lr;
    if (norm_p > 0 && norm_g > 0)
        step *= (REAL)h->coeff * norm_p / (norm_g + decay * norm_p);
    FN(move)(n, p, g, state[0], step, decay, (REAL)h->mu);
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->mu = fl_rule_attr(s, "mu");
    h->coeff = fl_rule_attr(s, "lars_coeff");
    h->weight_decay = fl_rule_attr(s, "lars_weight_decay");
}

static const fl_rule rule = {
    .state = {{"Velocity", "VelocityOut"}},
    .whole = true,
    .decays = true,
    .prepare = prepare,
    .f32 = lars_f32,
    .f64 = lars_f64,
};

const fl_op_def fl_op_lars_momentum = {
    .type = "lars_momentum",
    .in = {{"Param"}, {"Grad"}, {"Velocity"}, {"LearningRate"}},
    .out = {{"ParamOut"}, {"VelocityOut"}},
    .attr = {{"mu", FL_ATTR_FLOAT, .required = true},
             {"lars_coeff", FL_ATTR_FLOAT, .f = 0.001f},
             {"lars_weight_decay", FL_ATTR_FLOAT, .f = 0.0005f}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
