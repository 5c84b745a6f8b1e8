/* SPDX-License-Identifier: Apache-2.0 */
/* rule.c - runs an update rule for a dtype, and computes the numbers of a step.
 */
#include "kernel/rule.h"

#include <assert.h>

double fl_rule_attr(const fl_rule_step *s, const char *name)
{
    int i = fl_op_attr(s->def, name);
    assert(i >= 0 && "an attribute of the table");
    switch (s->attr[i].type) {
    case FL_ATTR_FLOAT:
        return s->attr[i].f;
    case FL_ATTR_BOOL:
        return s->attr[i].b;
    default:
        return (double)s->attr[i].i;
    }
}

fl_hyper fl_rule_prepare(const fl_rule *r, const fl_rule_step *s)
{
    fl_hyper h = {.lr = s->lr};
    if (r->prepare)
        r->prepare(s, &h);
    return h;
}

void fl_rule_apply(const fl_rule *r, fl_dtype dtype, int64_t n, void *p,
                   const void *g, void *const *state, const fl_hyper *h)
{
    if (dtype == FL_F64) {
        double *at[FL_RULE_STATES];
        for (int i = 0; i < FL_RULE_STATES; i++)
            at[i] = state[i];
        r->f64(n, p, g, at, h);
    } else {
        float *at[FL_RULE_STATES];
        for (int i = 0; i < FL_RULE_STATES; i++)
            at[i] = state[i];
        r->f32(n, p, g, at, h);
    }
}
