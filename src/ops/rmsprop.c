/* SPDX-License-Identifier: Apache-2.0 */
/* rmsprop   MeanSquareOut = decay * MeanSquare + (1 - decay) * Grad * Grad
 *           MomentOut     = momentum * Moment + LearningRate * Grad
 *                                        / sqrt(MeanSquareOut + epsilon)
 *           ParamOut      = Param - MomentOut
 * centered  MeanGradOut   = decay * MeanGrad + (1 - decay) * Grad
 *           and MeanSquareOut - MeanGradOut^2 stands under the root */
#define FL_SELF "ops/rmsprop.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(plain)(int64_t n, REAL *p, const REAL *g,
                                REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, eps = (REAL)h->epsilon, mu = (REAL)h->mu;
    const REAL rho = (REAL)h->decay, c = 1 - rho;
    REAL *mom = state[0], *square = state[1];
    for (int64_t i = 0; i < n; i++) {
        square[i] = rho * square[i] + c * g[i] * g[i];
        mom[i] = mu * mom[i] + lr * g[i] / RM(sqrt)(square[i] + eps);
        p[i] -= mom[i];
    }
}

FL_CLONES static void FN(centered)(int64_t n, REAL *p, const REAL *g,
                                   REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, eps = (REAL)h->epsilon, mu = (REAL)h->mu;
    const REAL rho = (REAL)h->decay, c = 1 - rho;
    REAL *mom = state[0], *square = state[1], *mean = state[2];
    for (int64_t i = 0; i < n; i++) {
        square[i] = rho * square[i] + c * g[i] * g[i];
        mean[i] = rho * mean[i] + c * g[i];
        const REAL spread = square[i] - mean[i] * mean[i] + eps;
        mom[i] = mu * mom[i] + lr * g[i] / RM(sqrt)(spread);
        p[i] -= mom[i];
    }
}

static void FN(rmsprop)(int64_t n, REAL *p, const REAL *g, REAL *const *state,
                        const fl_hyper *h)
{
    if (h->centered)
        FN(centered)(n, p, g, state, h);
    else
        FN(plain)(n, p, g, state, h);
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->epsilon = fl_rule_attr(s, "epsilon");
    h->decay = fl_rule_attr(s, "decay");
    h->mu = fl_rule_attr(s, "momentum");
    h->centered = fl_rule_attr(s, "centered") != 0;
}

static fl_err infer(fl_infer *x)
{
    if (fl_meta_attr(x, "centered")->b && !fl_meta_in(x, "MeanGrad", 0))
        return fl_fail(FL_EINVAL,
                       "rmsprop: centered is true, but input MeanGrad is "
                       "missing");
    return fl_rule_infer(x);
}

static const fl_rule rule = {
    .state = {{"Moment", "MomentOut"},
              {"MeanSquare", "MeanSquareOut"},
              {"MeanGrad", "MeanGradOut", .optional = true}},
    .decays = true,
    .prepare = prepare,
    .f32 = rmsprop_f32,
    .f64 = rmsprop_f64,
};

const fl_op_def fl_op_rmsprop = {
    .type = "rmsprop",
    .in = {{"Param"},
           {"MeanSquare"},
           {"MeanGrad", FL_OPTIONAL},
           {"LearningRate"},
           {"Grad"},
           {"Moment"}},
    .out = {{"ParamOut"},
            {"MomentOut"},
            {"MeanSquareOut"},
            {"MeanGradOut", FL_OPTIONAL}},
    .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-10f},
             {"decay", FL_ATTR_FLOAT, .f = 0.9f},
             {"momentum", FL_ATTR_FLOAT},
             {"centered", FL_ATTR_BOOL}},
    .infer = infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
