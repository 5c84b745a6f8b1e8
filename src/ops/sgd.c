/* sgd  ParamOut = Param - LearningRate * Grad */
#define FL_SELF "ops/sgd.c"
#include "ops/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(sgd)(int64_t n, REAL *p, const REAL *g,
                              REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr;
    for (int64_t i = 0; i < n; i++)
        p[i] -= lr * g[i];
}

#else

static const fl_rule rule = {
    .adds = true,
    .f32 = sgd_f32,
    .f64 = sgd_f64,
};

const fl_op_def fl_op_sgd = {
    .type = "sgd",
    .in = {{"Param"}, {"LearningRate"}, {"Grad"}},
    .out = {{"ParamOut"}},
    .infer = fl_rule_infer,
    .run = fl_rule_run,
    .rule = &rule,
};

#endif
