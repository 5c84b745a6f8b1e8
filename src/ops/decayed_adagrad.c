/* SPDX-License-Identifier: Apache-2.0 */
/* decayed_adagrad  MomentOut = decay * Moment + (1 - decay) * Grad * Grad
 *                  ParamOut  = Param - LearningRate * Grad
 *                                      / (sqrt(MomentOut) + epsilon) */
#define FL_SELF "ops/decayed_adagrad.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(decayed)(int64_t n, REAL *p, const REAL *g,
                                  REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, eps = (REAL)h->epsilon;
    const REAL old = (REAL)h->decay, fresh = 1 - old;
    REAL *m = state[0];
    for (int64_t i = 0; i < n; i++) {
        m[i] = old * m[i] + fresh * g[i] * g[i];
        p[i] -= lr * g[i] / (RM(sqrt)(m[i]) + eps);
    }
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->decay = fl_rule_attr(s, "decay");
    h->epsilon = fl_rule_attr(s, "epsilon");
}

static const fl_rule rule = {
    .state = {{"Moment", "MomentOut"}},
    .decays = true,
    .prepare = prepare,
    .f32 = decayed_f32,
    .f64 = decayed_f64,
};

const fl_op_def fl_op_decayed_adagrad = {
    .type = "decayed_adagrad",
    .in = {{"Param"}, {"Grad"}, {"Moment"}, {"LearningRate"}},
    .out = {{"ParamOut"}, {"MomentOut"}},
    .attr = {{"decay", FL_ATTR_FLOAT, .f = 0.95f},
             {"epsilon", FL_ATTR_FLOAT, .f = 1e-6f}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
