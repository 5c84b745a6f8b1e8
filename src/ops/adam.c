/* SPDX-License-Identifier: Apache-2.0 */
/* adam  Moment1Out = beta1 * Moment1 + (1 - beta1) * Grad
 *       Moment2Out = beta2 * Moment2 + (1 - beta2) * Grad * Grad
 *       step       = LearningRate * sqrt(1 - Beta2Pow) / (1 - Beta1Pow)
 *       ParamOut   = Param - step * Moment1Out / (sqrt(Moment2Out) + epsilon)
 *
 * The powers are multiplied by two scale operators that follow in the program.
 * Sparse: rows that are not listed decay too, unless lazy_mode. */
#define FL_SELF "ops/adam.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(adam)(int64_t n, REAL *p, const REAL *g,
                               REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, eps = (REAL)h->epsilon;
    const REAL b1 = (REAL)h->beta1, c1 = 1 - b1;
    const REAL b2 = (REAL)h->beta2, c2 = 1 - b2;
    REAL *m1 = state[0], *m2 = state[1];
    for (int64_t i = 0; i < n; i++) {
        m1[i] = b1 * m1[i] + c1 * g[i];
        m2[i] = b2 * m2[i] + c2 * g[i] * g[i];
        p[i] -= lr * (m1[i] / (RM(sqrt)(m2[i]) + eps));
    }
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->beta1 = fl_rule_attr(s, "beta1");
    h->beta2 = fl_rule_attr(s, "beta2");
    h->epsilon = fl_rule_attr(s, "epsilon");
    h->lr = s->lr * sqrt(1 - s->power[1]) / (1 - s->power[0]);
}

static const fl_rule rule = {
    .state = {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
    .power = {{"Beta1Pow", "beta1"}, {"Beta2Pow", "beta2"}},
    .decays = true,
    .prepare = prepare,
    .f32 = adam_f32,
    .f64 = adam_f64,
};

const fl_op_def fl_op_adam = {
    .type = "adam",
    .in = {{"Param"},
           {"Grad"},
           {"LearningRate"},
           {"Moment1"},
           {"Moment2"},
           {"Beta1Pow"},
           {"Beta2Pow"}},
    .out = {{"ParamOut"}, {"Moment1Out"}, {"Moment2Out"}},
    .attr = {{"beta1", FL_ATTR_FLOAT, .f = 0.9f},
             {"beta2", FL_ATTR_FLOAT, .f = 0.999f},
             {"epsilon", FL_ATTR_FLOAT, .f = 1e-8f},
             {"lazy_mode", FL_ATTR_BOOL},
             {"min_row_size_to_use_multithread", FL_ATTR_LONG, .i = 1000}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
