/* SPDX-License-Identifier: Apache-2.0 */
/* grad.h - the steps of backward and the struct that they share.
 *
 *     path        which ops matter, which variables get no gradient
 *     grad_ops    the gradient ops of those, last op first
 *     accumulate  several gradients of one variable become their sum
 *     backward    what is missing, clipping, names; then all enters the block
 *
 * Only the last step changes the program: until then the gradient is a list of
 * descs in its own arena. */
#ifndef FL_BUILD_GRAD_H
#define FL_BUILD_GRAD_H

#include "build/net.h"

/* A gradient under construction. The keys of its maps are names of gradients.
 */
typedef struct fl_diff {
    fl_arena *arena;
    fl_block *block;
    fl_map asked;   /* variables whose gradient the caller named */
    fl_map cut;     /* gradients that are not needed or do not exist */
    fl_map var_of;  /* gradient -> name of the variable that it belongs to */
    fl_map grad_of; /* variable -> gradient; filled when the list is complete */
    fl_map made;    /* gradients that an op of the list writes */
    fl_ops path;    /* forward ops that lead from inputs to targets, in order */
    FL_VEC(fl_desc *) ops;
} fl_diff;

bool fl_is_grad(const char *name); /* whether the name contains "@GRAD" */
/* Whether the gradient in this slot is computed by another op of the list. A
 * gradient of an earlier backward is an ordinary variable here. */
bool fl_diff_flows(const fl_diff *d, const char *slot, const char *name);
bool fl_diff_is_cut(const fl_diff *d, const char *var);
void fl_diff_cut(fl_diff *d, const char *var);

/* path.c: fill d->path and complete d->cut. Without inputs the path has every
 * op that leads to a target. */
void fl_diff_find_path(fl_diff *d, int n_targets, fl_var *const *targets,
                       int n_inputs, fl_var *const *inputs);

/* grad_ops.c: append the gradient ops of d->path to d->ops. */
fl_err fl_diff_emit(fl_diff *d) FL_MUST_CHECK;

/* accumulate.c: a gradient with several writers becomes g@RENAME@0, ... and a
 * sum in front of the first reader, or at the end. */
void fl_diff_accumulate(fl_diff *d);

/* --- names of a desc, one after the other --- */

typedef struct fl_names_at {
    const fl_args *args;
    int n, slot, i;
} fl_names_at;

/* for (const char **s; (s = fl_names_next(&it));) *s ... */
static inline fl_names_at fl_names_in(const fl_desc *d)
{
    return (fl_names_at){d->in, d->n_in, 0, 0};
}

static inline fl_names_at fl_names_out(const fl_desc *d)
{
    return (fl_names_at){d->out, d->n_out, 0, 0};
}

static inline const char *fl_names_slot(const fl_names_at *it)
{
    return it->args[it->slot].slot; /* of the last name */
}

static inline const char **fl_names_next(fl_names_at *it)
{
    while (it->slot < it->n && it->i >= it->args[it->slot].n) {
        it->slot++;
        it->i = 0;
    }
    return it->slot < it->n ? &it->args[it->slot].name[it->i++] : NULL;
}

#endif
