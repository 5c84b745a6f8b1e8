/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - how an optimiser changes a parameter, one rule for all its users.
 *
 * A rule is a state layout and one function that updates n elements. The dense
 * operator, the operator on selected rows, the row of a sparse table and the
 * server that applies from received slices all call the same function, so that
 * they agree to the last bit.
 *
 * Rules work element by element: any slice of a parameter may be updated
 * alone, with the same slice of the gradient and of every state. The exception
 * is a rule with the flag `whole` (lars), which computes the norm of the whole
 * parameter. */
#ifndef FL_KERNEL_RULE_H
#define FL_KERNEL_RULE_H

#include "op/op.h"

enum {
    FL_RULE_STATES = 3,
    FL_RULE_POWERS = 2,
};

/* The numbers of one step, made once before any element is touched. A rule
 * reads only the numbers that it has set. */
typedef struct fl_hyper {
    double lr; /* learning rate of this step; for adam and adamax it includes
                  the bias correction */
    double beta1, beta2, epsilon;
    double mu;                  /* momentum */
    double decay;               /* of a running mean */
    double coeff, weight_decay; /* lars */
    double l1, l2, lr_power;    /* ftrl */
    bool nesterov, centered;
} fl_hyper;

/* The inputs from which the numbers are computed. Attributes are in the order
 * of def->attr. */
typedef struct fl_rule_step {
    const fl_op_def *def;
    const fl_attr *attr;
    double lr;                    /* LearningRate; 0 where there is none */
    double power[FL_RULE_POWERS]; /* as rule->power lists them */
} fl_rule_step;

/* Memory of the parameter's shape that lives from step to step, 0 at first
 * (adagrad's start is the optimiser's choice). */
typedef struct fl_rule_state {
    const char *in, *out; /* slots; NULL ends the list */
    bool optional;        /* the pointer may be NULL */
} fl_rule_state;

/* A power of an attribute: it starts as the attribute, and the caller of the
 * rule multiplies it by the attribute after each step. */
typedef struct fl_rule_power {
    const char *slot, *attr; /* NULL ends the list */
} fl_rule_power;

typedef struct fl_rule {
    fl_rule_state state[FL_RULE_STATES];
    fl_rule_power power[FL_RULE_POWERS];
    bool whole; /* needs the whole parameter at once; dense gradients only */
    bool subtracts; /* the step is p - lr * g: a row listed twice is updated
                     * twice, in order; else its gradients are added up first */
    bool decays; /* a gradient of 0 changes something: rows that are not listed
                  * are visited too, unless the op is lazy */
    void (*prepare)(const fl_rule_step *s, fl_hyper *h);
    /* p, g and state[i] have n elements each and do not overlap. */
    void (*f32)(int64_t n, float *p, const float *g, float *const *state,
                const fl_hyper *h);
    void (*f64)(int64_t n, double *p, const double *g, double *const *state,
                const fl_hyper *h);
} fl_rule;

/* An attribute as a number: float, int or bool. */
double fl_rule_attr(const fl_rule_step *s, const char *name);

/* The numbers of a step. */
fl_hyper fl_rule_prepare(const fl_rule *r, const fl_rule_step *s);

/* Update n elements of dtype f32 or f64; p, g and the states (NULL where an
 * optional one is absent) start at the same element. */
void fl_rule_apply(const fl_rule *r, fl_dtype dtype, int64_t n, void *p,
                   const void *g, void *const *state, const fl_hyper *h);

/* --- the operators (update.c) --- */

/* Check that all inputs have the shape and dtype of Param, which is f32 or f64,
 * and that LearningRate and the powers are [1]. Outputs are like their inputs.
 */
fl_err fl_rule_infer(fl_infer *x);
fl_err fl_rule_run(fl_call *c); /* dense, or selected rows */

#endif
