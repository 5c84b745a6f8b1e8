/* SPDX-License-Identifier: Apache-2.0 */
/* optimizers.c - the table of optimisers.
 *
 * Arguments, their order and defaults are Fluid's. Two errors of Fluid 1.5 are
 * not repeated: there Ftrl passes l1 as l2, and DecayedAdagrad never passes its
 * decay. */
#include "build/optimizer.h"

#include "base/str.h"

#include <string.h>

#define MOMENTUM "the factor of the previous step, which is added to each step"
#define RATE                                                                   \
    {                                                                          \
        "learning_rate", FL_ARG_FLOAT_OR_VAR                                   \
    }
#define RATE_001                                                               \
    {                                                                          \
        "learning_rate", FL_ARG_FLOAT_OR_VAR, "0.001"                          \
    }
#define DECAY                                                                  \
    {                                                                          \
        "regularization", FL_ARG_REGULARIZER, "None"                           \
    }
#define NAME                                                                   \
    {                                                                          \
        "name", FL_ARG_STR, "None",                                            \
            .doc = "a part of the names of its variables; None: none"          \
    }

/* Arguments of all optimisers of paddle.v2. Their decay is not a regularizer of
 * Fluid. */
#define V2_ARGS                                                                \
    RATE, {"momentum", FL_ARG_FLOAT, "0.0", .doc = MOMENTUM},                  \
        {"l2", FL_ARG_FLOAT, "0.0"},                                           \
    {                                                                          \
        "l1", FL_ARG_FLOAT, "0.0"                                              \
    }
#define V2_MEAN                                                                \
    {"rho", FL_ARG_FLOAT, "0.95"},                                             \
    {                                                                          \
        "epsilon", FL_ARG_FLOAT, "1e-06"                                       \
    }
#define V2_ATTRS                                                               \
    {"mu", "momentum"}, {"l2"},                                                \
    {                                                                          \
        "l1"                                                                   \
    }
#define V2_VELOCITY                                                            \
    {                                                                          \
        "velocity", "Velocity", "VelocityOut"                                  \
    }
#define V2_SQUARE                                                              \
    {                                                                          \
        "square", "Square", "SquareOut"                                        \
    }
#define V2_POWER                                                               \
    {                                                                          \
        "rho_pow_acc", "RhoPow", NULL, "rho", true                             \
    }

const fl_optimizer_def fl_optimizers[] = {
    {
        .op = "sgd",
        .cls = "SGD",
        .doc =
            "Stochastic gradient descent: subtracts learning_rate * gradient "
            "from each parameter.",
        .args = {RATE, DECAY, NAME},
    },
    {
        .op = "momentum",
        .cls = "Momentum",
        .doc = "Gradient descent with momentum: momentum times the previous "
               "step is added to each step.",
        .args = {RATE,
                 {"momentum", FL_ARG_FLOAT, .doc = MOMENTUM},
                 {"use_nesterov", FL_ARG_BOOL, "False"},
                 DECAY,
                 NAME},
        .accumulators = {{"velocity", "Velocity", "VelocityOut"}},
        .attrs = {{"mu", "momentum"}, {"use_nesterov"}},
    },
    {
        .op = "lars_momentum",
        .cls = "LarsMomentum",
        .doc =
            "LARS: momentum whose step is scaled for each parameter by the "
            "norms of the parameter and of its gradient. Dense gradients only.",
        .args = {RATE,
                 {"momentum", FL_ARG_FLOAT, .doc = MOMENTUM},
                 {"lars_coeff", FL_ARG_FLOAT, "0.001"},
                 {"lars_weight_decay", FL_ARG_FLOAT, "0.0005"},
                 DECAY,
                 NAME},
        .accumulators = {{"velocity", "Velocity", "VelocityOut"}},
        .attrs = {{"mu", "momentum"}, {"lars_coeff"}, {"lars_weight_decay"}},
    },
    {
        .op = "adagrad",
        .cls = "Adagrad",
        .doc = "Adagrad: divides each step by the root of the sum of all "
               "squared gradients so far.",
        .args = {RATE,
                 {"epsilon", FL_ARG_FLOAT, "1e-06"},
                 DECAY,
                 NAME,
                 {"initial_accumulator_value", FL_ARG_FLOAT, "0.0"}},
        .accumulators = {{"moment", "Moment", "MomentOut",
                          "initial_accumulator_value"}},
        .attrs = {{"epsilon"}},
    },
    {
        .op = "adam",
        .cls = "Adam",
        .doc = "Adam: divides the running mean of gradients by the root of "
               "the running mean of their squares; both are corrected for "
               "their initial value 0.",
        .args = {RATE_001,
                 {"beta1", FL_ARG_FLOAT, "0.9"},
                 {"beta2", FL_ARG_FLOAT, "0.999"},
                 {"epsilon", FL_ARG_FLOAT, "1e-08"},
                 DECAY,
                 NAME,
                 {"lazy_mode", FL_ARG_BOOL, "False"}},
        .accumulators = {{"moment1", "Moment1", "Moment1Out"},
                         {"moment2", "Moment2", "Moment2Out"},
                         {"beta1_pow_acc", "Beta1Pow", NULL, "beta1", true},
                         {"beta2_pow_acc", "Beta2Pow", NULL, "beta2", true}},
        .attrs = {{"beta1"}, {"beta2"}, {"epsilon"}, {"lazy_mode"}},
    },
    {
        .op = "adamax",
        .cls = "Adamax",
        .doc = "Adamax: Adam with a decaying maximum of absolute gradients "
               "instead of the mean of squares.",
        .args = {RATE_001,
                 {"beta1", FL_ARG_FLOAT, "0.9"},
                 {"beta2", FL_ARG_FLOAT, "0.999",
                  .doc = "the decay rate of the maximum of gradients"},
                 {"epsilon", FL_ARG_FLOAT, "1e-08"},
                 DECAY,
                 NAME},
        .accumulators = {{"moment", "Moment", "MomentOut"},
                         {"inf_norm", "InfNorm", "InfNormOut"},
                         {"beta1_pow_acc", "Beta1Pow", NULL, "beta1", true}},
        .attrs = {{"beta1"}, {"beta2"}, {"epsilon"}},
    },
    {
        .op = "decayed_adagrad",
        .cls = "DecayedAdagrad",
        .doc = "Adagrad with a running mean of squared gradients instead of "
               "their sum.",
        .args = {RATE,
                 {"decay", FL_ARG_FLOAT, "0.95"},
                 {"epsilon", FL_ARG_FLOAT, "1e-06"},
                 DECAY,
                 NAME},
        .accumulators = {{"moment", "Moment", "MomentOut"}},
        .attrs = {{"decay"}, {"epsilon"}},
    },
    {
        .op = "adadelta",
        .cls = "Adadelta",
        .doc = "Adadelta: computes the step size from running means of squared "
               "gradients and of squared steps.",
        .args = {{"learning_rate", FL_ARG_FLOAT_OR_VAR,
                  .doc = "accepted and not used"},
                 {"epsilon", FL_ARG_FLOAT, "1e-06"},
                 {"rho", FL_ARG_FLOAT, "0.95",
                  .doc = "the decay rate of both means"},
                 DECAY,
                 NAME},
        .accumulators = {{"_avg_squared_grad", "AvgSquaredGrad",
                          "AvgSquaredGradOut"},
                         {"_avg_squared_update", "AvgSquaredUpdate",
                          "AvgSquaredUpdateOut"}},
        .attrs = {{"epsilon"}, {"rho"}},
    },
    {
        .op = "rmsprop",
        .cls = "RMSProp",
        .doc = "RMSProp: divides each gradient by the root of the running mean "
               "of its square.",
        .args = {RATE,
                 {"rho", FL_ARG_FLOAT, "0.95"},
                 {"epsilon", FL_ARG_FLOAT, "1e-06"},
                 {"momentum", FL_ARG_FLOAT, "0.0", .doc = MOMENTUM},
                 {"centered", FL_ARG_BOOL, "False"},
                 DECAY,
                 NAME},
        .accumulators = {{"momentum", "Moment", "MomentOut"},
                         {"mean_square", "MeanSquare", "MeanSquareOut"},
                         {"mean_grad", "MeanGrad", "MeanGradOut"}},
        .attrs = {{"epsilon"}, {"decay", "rho"}, {"momentum"}, {"centered"}},
    },
    {
        .op = "ftrl",
        .cls = "Ftrl",
        .doc = "Follow the regularised leader (FTRL): with l1, small weights "
               "become exactly zero.",
        .args = {RATE,
                 {"l1", FL_ARG_FLOAT, "0.0"},
                 {"l2", FL_ARG_FLOAT, "0.0"},
                 {"lr_power", FL_ARG_FLOAT, "-0.5"},
                 DECAY,
                 NAME},
        .accumulators = {{"squared", "SquaredAccumulator", "SquaredAccumOut"},
                         {"linear", "LinearAccumulator", "LinearAccumOut"}},
        .attrs = {{"l1"}, {"l2"}, {"lr_power"}},
    },
    /* optimisers of paddle.v2 */
    {
        .op = "v2_momentum",
        .cls = "V2Momentum",
        .doc = "The Momentum of paddle.v2: the velocity includes the learning "
               "rate.",
        .args = {V2_ARGS, DECAY, NAME},
        .accumulators = {V2_VELOCITY},
        .attrs = {V2_ATTRS},
    },
    {
        .op = "v2_adagrad",
        .cls = "V2AdaGrad",
        .doc =
            "The AdaGrad of paddle.v2: epsilon is added inside the root, and "
            "the squares do not include weight decay.",
        .args = {V2_ARGS, {"epsilon", FL_ARG_FLOAT, "1e-06"}, DECAY, NAME},
        .accumulators = {V2_VELOCITY, V2_SQUARE},
        .attrs = {V2_ATTRS, {"epsilon"}},
    },
    {
        .op = "v2_decayed_adagrad",
        .cls = "V2DecayedAdaGrad",
        .doc = "The DecayedAdaGrad of paddle.v2.",
        .args = {V2_ARGS, V2_MEAN, DECAY, NAME},
        .accumulators = {V2_VELOCITY, V2_SQUARE, V2_POWER},
        .attrs = {V2_ATTRS, {"epsilon"}, {"rho"}},
    },
    {
        .op = "v2_adadelta",
        .cls = "V2AdaDelta",
        .doc = "The AdaDelta of paddle.v2: the step is multiplied by the "
               "learning rate.",
        .args = {V2_ARGS, V2_MEAN, DECAY, NAME},
        .accumulators = {V2_VELOCITY,
                         V2_SQUARE,
                         {"square_update", "SquareUpdate", "SquareUpdateOut"}},
        .attrs = {V2_ATTRS, {"epsilon"}, {"rho"}},
    },
    {
        .op = "v2_rmsprop",
        .cls = "V2RMSProp",
        .doc = "The RMSProp of paddle.v2: the mean of gradients is subtracted "
               "from them.",
        .args = {V2_ARGS, V2_MEAN, DECAY, NAME},
        .accumulators = {V2_VELOCITY,
                         V2_SQUARE,
                         {"mean_grad", "MeanGrad", "MeanGradOut"},
                         V2_POWER},
        .attrs = {V2_ATTRS, {"epsilon"}, {"rho"}},
    },
};

const int fl_optimizers_count = sizeof fl_optimizers / sizeof *fl_optimizers;

static bool is_called(const fl_optimizer_def *def, const char *name)
{
    const size_t n = strlen(def->cls);
    return !strcmp(name, def->op) || !strcmp(name, def->cls) ||
           (!strncmp(name, def->cls, n) && !strcmp(name + n, "Optimizer"));
}

static const char *nearest_optimizer(const char *name)
{
    const char *best = NULL;
    int least = 4; /* with more edits than this it is another word */
    for (int i = 0; i < fl_optimizers_count; i++) {
        const char *names[] = {fl_optimizers[i].op, fl_optimizers[i].cls};
        for (int k = 0; k < 2; k++) {
            const int d = fl_str_distance(name, names[k]);
            if (d < least) {
                least = d;
                best = names[k];
            }
        }
    }
    return best;
}

fl_err fl_optimizer_find(const char *name, const fl_optimizer_def **out)
{
    for (int i = 0; i < fl_optimizers_count; i++)
        if (is_called(&fl_optimizers[i], name)) {
            *out = &fl_optimizers[i];
            return FL_OK;
        }
    const char *near = nearest_optimizer(name);
    if (near)
        return fl_fail(FL_ENOENT,
                       "unknown optimizer \"%s\"; did you mean \"%s\"?", name,
                       near);
    return fl_fail(FL_ENOENT, "unknown optimizer \"%s\"", name);
}
