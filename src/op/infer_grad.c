/* SPDX-License-Identifier: Apache-2.0 */
/* infer_grad.c - the shapes of a gradient, from the forward operator's rule.
 *
 * Out@GRAD must have the shape that the forward rule gives Out. Otherwise the
 * gradient kernel would read beyond the memory of Out@GRAD. */
#include "op/op.h"

#include <stdio.h>

enum {
    NAME = 64
};

static const char *grad_slot(const char *slot, char name[NAME])
{
    snprintf(name, NAME, "%s" FL_GRAD_SUFFIX, slot);
    return name;
}

/* Run the rule of fwd on the inputs that its gradient has, too. */
static fl_err run_forward(const fl_infer *x, const fl_op_def *fwd,
                          fl_meta made[FL_SLOTS])
{
    fl_infer f = {.def = fwd, .attr = x->attr, .running = x->running};
    fl_meta *at[FL_SLOTS];
    for (int s = 0; s < FL_SLOTS && fwd->in[s].name; s++) {
        int i = fl_op_slot_in(x->def, fwd->in[s].name);
        f.in[s] = i < 0 ? NULL : x->in[i];
        f.n_in[s] = i < 0 ? 0 : x->n_in[i];
    }
    for (int s = 0; s < FL_SLOTS && fwd->out[s].name; s++) {
        at[s] = &made[s];
        f.out[s] = &at[s];
        f.n_out[s] = 1;
    }
    return fl_infer_run(&f);
}

/* Set S@GRAD like S, for all variables of the slot. */
static void set_like(const fl_infer *x, const char *slot)
{
    char name[NAME];
    if (fl_op_slot_out(x->def, grad_slot(slot, name)) < 0)
        return;
    for (int i = 0; i < fl_meta_count_out(x, name); i++) {
        fl_meta *out = fl_meta_out(x, name, i);
        const fl_meta *in = fl_meta_in(x, slot, i);
        if (out && in)
            *out = *in;
    }
}

fl_err fl_infer_grad_of_rule(fl_infer *x)
{
    const fl_op_def *fwd = x->def->forward;
    fl_meta made[FL_SLOTS] = {0};
    char name[NAME];
    FL_TRY(run_forward(x, fwd, made));
    for (int s = 0; s < FL_SLOTS && fwd->out[s].name; s++)
        if (fl_op_slot_in(x->def, grad_slot(fwd->out[s].name, name)) >= 0)
            FL_TRY(fl_meta_expect(x, name, made[s].dtype, &made[s].shape));
    for (int s = 0; s < FL_SLOTS && fwd->in[s].name; s++)
        set_like(x, fwd->in[s].name);
    return FL_OK;
}
