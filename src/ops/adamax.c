/* SPDX-License-Identifier: Apache-2.0 */
/* adamax  MomentOut  = beta1 * Moment + (1 - beta1) * Grad
 *         InfNormOut = max(|Grad|, beta2 * InfNorm + epsilon)
 *         ParamOut   = Param - LearningRate / (1 - Beta1Pow)
 *                              * MomentOut / InfNormOut
 *
 * The power is multiplied by a scale operator that follows in the program. */
#define FL_SELF "ops/adamax.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(adamax)(int64_t n, REAL *p, const REAL *g,
                                 REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, eps = (REAL)h->epsilon;
    const REAL b1 = (REAL)h->beta1, c1 = 1 - b1, b2 = (REAL)h->beta2;
    REAL *m = state[0], *u = state[1];
    for (int64_t i = 0; i < n; i++) {
        const REAL size = RM(fabs)(g[i]), old = b2 * u[i] + eps;
        m[i] = b1 * m[i] + c1 * g[i];
        u[i] = size > old ? size : old;
        p[i] -= lr * (m[i] / u[i]);
    }
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->beta1 = fl_rule_attr(s, "beta1");
    h->beta2 = fl_rule_attr(s, "beta2");
    h->epsilon = fl_rule_attr(s, "epsilon");
    h->lr = s->lr / (1 - s->power[0]);
}

static const fl_rule rule = {
    .state = {{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}},
    .power = {{"Beta1Pow", "beta1"}},
    .decays = true,
    .prepare = prepare,
    .f32 = adamax_f32,
    .f64 = adamax_f64,
};

const fl_op_def fl_op_adamax = {
    .type = "adamax",
    .in = {{"Param"},
           {"Grad"},
           {"LearningRate"},
           {"Moment"},
           {"InfNorm"},
           {"Beta1Pow"}},
    .out = {{"ParamOut"}, {"MomentOut"}, {"InfNormOut"}},
    .attr = {{"beta1", FL_ATTR_FLOAT, .f = 0.9f},
             {"beta2", FL_ATTR_FLOAT, .f = 0.999f},
             {"epsilon", FL_ATTR_FLOAT, .f = 1e-8f}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
