/* SPDX-License-Identifier: Apache-2.0 */
/* ftrl  (follow the regularised leader, proximal)
 *
 *       SquaredAccumOut = SquaredAccumulator + Grad * Grad
 *       LinearAccumOut  = LinearAccumulator + Grad
 *                         - (r(SquaredAccumOut) - r(SquaredAccumulator))
 *                           / LearningRate * Param
 *       ParamOut        = (l1 * sign(LinearAccumOut) - LinearAccumOut)
 *                         / (r(SquaredAccumOut) / LearningRate + 2 * l2)
 *                         where |LinearAccumOut| > l1, else 0
 *
 * with r(x) = x ^ -lr_power: the square root at the usual -0.5. Without a
 * gradient the parameter would still jump from its start value to where the
 * accumulators say, so sparse updates visit listed rows only, as in Fluid. */
#define FL_SELF "ops/ftrl.c"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

/* The new parameter, from the two accumulators. Written without a branch around
 * the quotient, which would prevent vectorisation. If there was no gradient yet
 * and l2 is 0, the divisor is 0. */
static inline REAL FN(leader)(REAL linear, REAL root, REAL lr, REAL l1, REAL l2)
{
    const REAL above = RM(fabs)(linear) - l1, size = above > 0 ? above : 0;
    const REAL curve = root / lr + 2 * l2;
    return (0 - RM(copysign)(size, linear)) / (curve > 0 ? curve : 1);
}

FL_CLONES static void FN(by_root)(int64_t n, REAL *p, const REAL *g,
                                  REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, l1 = (REAL)h->l1, l2 = (REAL)h->l2;
    REAL *squared = state[0], *linear = state[1];
    for (int64_t i = 0; i < n; i++) {
        const REAL sum = squared[i] + g[i] * g[i], root = RM(sqrt)(sum);
        linear[i] += g[i] - (root - RM(sqrt)(squared[i])) / lr * p[i];
        squared[i] = sum;
        p[i] = FN(leader)(linear[i], root, lr, l1, l2);
    }
}

static void FN(by_power)(int64_t n, REAL *p, const REAL *g, REAL *const *state,
                         const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr, l1 = (REAL)h->l1, l2 = (REAL)h->l2;
    const REAL to = (REAL)-h->lr_power;
    REAL *squared = state[0], *linear = state[1];
    for (int64_t i = 0; i < n; i++) {
        const REAL sum = squared[i] + g[i] * g[i], root = RM(pow)(sum, to);
        linear[i] += g[i] - (root - RM(pow)(squared[i], to)) / lr * p[i];
        squared[i] = sum;
        p[i] = FN(leader)(linear[i], root, lr, l1, l2);
    }
}

static void FN(ftrl)(int64_t n, REAL *p, const REAL *g, REAL *const *state,
                     const fl_hyper *h)
{
    if (h->lr_power == -0.5)
        FN(by_root)(n, p, g, state, h);
    else
        FN(by_power)(n, p, g, state, h);
}

#else

static void prepare(const fl_rule_step *s, fl_hyper *h)
{
    h->l1 = fl_rule_attr(s, "l1");
    h->l2 = fl_rule_attr(s, "l2");
    h->lr_power = fl_rule_attr(s, "lr_power");
}

static const fl_rule rule = {
    .state = {{"SquaredAccumulator", "SquaredAccumOut"},
              {"LinearAccumulator", "LinearAccumOut"}},
    .prepare = prepare,
    .f32 = ftrl_f32,
    .f64 = ftrl_f64,
};

const fl_op_def fl_op_ftrl = {
    .type = "ftrl",
    .in = {{"Param"},
           {"SquaredAccumulator"},
           {"LinearAccumulator"},
           {"Grad"},
           {"LearningRate"}},
    .out = {{"ParamOut"}, {"SquaredAccumOut"}, {"LinearAccumOut"}},
    .attr = {{"l1", FL_ATTR_FLOAT},
             {"l2", FL_ATTR_FLOAT},
             {"lr_power", FL_ATTR_FLOAT, .f = -0.5f},
             {"learning_rate", FL_ATTR_FLOAT}}, /* LearningRate is read */
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
