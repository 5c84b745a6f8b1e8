/* SPDX-License-Identifier: Apache-2.0 */
/* adadelta  AvgSquaredGradOut   = rho * AvgSquaredGrad + (1 - rho) * Grad^2
 *           update              = -sqrt((AvgSquaredUpdate + epsilon)
 *                                     / (AvgSquaredGradOut + epsilon)) * Grad
 *           AvgSquaredUpdateOut = rho * AvgSquaredUpdate
 *                                 + (1 - rho) * update^2
 *           ParamOut            = Param + update; no LearningRate */
#define FL_SELF "ops/adadelta.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(adadelta)(int64_t n, REAL *p, const REAL *g,
                                   REAL *const *state, const fl_hyper *h)
{
    const REAL rho = (REAL)h->decay, c = 1 - rho, eps = (REAL)h->epsilon;
    REAL *grad = state[0], *update = state[1];
    for (int64_t i = 0; i < n; i++) {
        grad[i] = rho * grad[i] + c * g[i] * g[i];
        const REAL ratio = (update[i] + eps) / (grad[i] + eps);
        const REAL step = RM(sqrt)(ratio) * g[i];
        update[i] = rho * update[i] + c * step * step;
        p[i] -= step;
    }
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->decay = fl_rule_attr(s, "rho");
    h->epsilon = fl_rule_attr(s, "epsilon");
}

static const fl_rule rule = {
    .state = {{"AvgSquaredGrad", "AvgSquaredGradOut"},
              {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}},
    .decays = true,
    .prepare = prepare,
    .f32 = adadelta_f32,
    .f64 = adadelta_f64,
};

const fl_op_def fl_op_adadelta = {
    .type = "adadelta",
    .in = {{"Param"}, {"Grad"}, {"AvgSquaredGrad"}, {"AvgSquaredUpdate"}},
    .out = {{"ParamOut"}, {"AvgSquaredGradOut"}, {"AvgSquaredUpdateOut"}},
    .attr = {{"rho", FL_ATTR_FLOAT, .f = 0.95f},
             {"epsilon", FL_ATTR_FLOAT, .f = 1e-6f}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
