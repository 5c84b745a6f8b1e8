/* SPDX-License-Identifier: Apache-2.0 */
/* test_rule.h - two steps of an update rule, compared with values that were
 * computed independently of the code under test. Tests only. */
#ifndef FL_KERNEL_TEST_RULE_H
#define FL_KERNEL_TEST_RULE_H

#include "check/check.h"
#include "kernel/rule.h"

#include <string.h>

enum {
    TEST_RULE_N = 4, /* elements of the parameter, which is [2, 2] */
};

typedef double test_elements[TEST_RULE_N];

static const test_elements test_rule_param = {1, -2, 0.5, 3};
static const test_elements test_rule_grad[2] = {{0.5, -1, 0.25, 0},
                                                {-0.25, 0.5, 1, -2}};

/* The learning rate, if the operator has one, is 0.1. Powers are those of the
 * attributes that the rule names. */
typedef struct test_rule_case {
    const char *type;
    fl_attr attr[FL_ATTRS];
    test_elements param[2]; /* after each step */
    struct {
        const char *slot;       /* NULL ends the list */
        double start;           /* every element before the first step */
        test_elements after[2]; /* each step */
    } state[FL_RULE_STATES];
} test_rule_case;

static inline fl_case_arg test_rule_tensor(const char *slot, const double *x)
{
    fl_case_arg a = {slot, {2, 2}, {0}};
    memcpy(a.value, x, sizeof(test_elements));
    return a;
}

static inline const char *test_rule_out(const fl_rule *r, const char *in)
{
    for (int i = 0; i < FL_RULE_STATES && r->state[i].in; i++)
        if (!strcmp(r->state[i].in, in))
            return r->state[i].out;
    CHECK(!"the rule has the state");
    return NULL;
}

static inline double test_rule_power(const test_rule_case *c, const char *attr,
                                     int step)
{
    for (int i = 0; i < FL_ATTRS && c->attr[i].name; i++)
        if (!strcmp(c->attr[i].name, attr))
            return step ? c->attr[i].f * c->attr[i].f : c->attr[i].f;
    CHECK(!"the case has the attribute");
    return 0;
}

static inline bool test_rule_has(const fl_op_def *def, const char *slot)
{
    for (int i = 0; i < FL_SLOTS && def->in[i].name; i++)
        if (!strcmp(def->in[i].name, slot))
            return true;
    return false;
}

static inline void test_rule_step(const test_rule_case *c, int step)
{
    const fl_op_def *def;
    fl_op_case op = {.type = c->type};
    int n = 0, k = 0;
    CHECK_OK(fl_registry_get(fl_check_registry(), c->type, &def));
    memcpy(op.attr, c->attr, sizeof op.attr);
    op.in[n++] =
        test_rule_tensor("Param", step ? c->param[0] : test_rule_param);
    op.in[n++] = test_rule_tensor("Grad", test_rule_grad[step]);
    if (test_rule_has(def, "LearningRate"))
        op.in[n++] = (fl_case_arg){"LearningRate", {1}, {0.1}};
    op.out[k] = test_rule_tensor("ParamOut", c->param[step]);
    op.out[k++].same = "Param";
    for (int i = 0; i < FL_RULE_STATES && c->state[i].slot; i++) {
        const char *slot = c->state[i].slot;
        const double s = c->state[i].start;
        const test_elements start = {s, s, s, s};
        op.in[n++] =
            test_rule_tensor(slot, step ? c->state[i].after[0] : start);
        op.out[k] = test_rule_tensor(test_rule_out(def->rule, slot),
                                     c->state[i].after[step]);
        op.out[k++].same = slot;
    }
    for (int i = 0; i < FL_RULE_POWERS && def->rule->power[i].slot; i++)
        op.in[n++] =
            (fl_case_arg){def->rule->power[i].slot,
                          {1},
                          {test_rule_power(c, def->rule->power[i].attr, step)}};
    fl_check_op(&op);
}

static inline void test_rule(const test_rule_case *c)
{
    for (int step = 0; step < 2; step++)
        test_rule_step(c, step);
}

#endif
