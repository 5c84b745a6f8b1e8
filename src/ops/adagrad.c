/* SPDX-License-Identifier: Apache-2.0 */
/* adagrad  MomentOut = Moment + Grad * Grad
 *          ParamOut  = Param - LearningRate * Grad / (sqrt(MomentOut) + eps) */
#define FL_SELF "ops/adagrad.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(adagrad)(int64_t n, REAL *p, const REAL *g,
                                  REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, eps = (REAL)h->epsilon;
    REAL *m = state[0];
    for (int64_t i = 0; i < n; i++) {
        m[i] += g[i] * g[i];
        p[i] -= lr * g[i] / (RM(sqrt)(m[i]) + eps);
    }
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->epsilon = fl_rule_attr(s, "epsilon");
}

static const fl_rule rule = {
    .state = {{"Moment", "MomentOut"}},
    .prepare = prepare,
    .f32 = adagrad_f32,
    .f64 = adagrad_f64,
};

const fl_op_def fl_op_adagrad = {
    .type = "adagrad",
    .in = {{"Param"}, {"Grad"}, {"Moment"}, {"LearningRate"}},
    .out = {{"ParamOut"}, {"MomentOut"}},
    .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-6f}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
