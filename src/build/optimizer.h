/* optimizer.h - optimisers: what minimises a loss.
 *
 * An optimiser is a row of a table: its arguments, the op that updates a
 * parameter, and the accumulators that the op keeps. Everything else is the
 * same for all of them: gradients, clipping, decay, learning rates, the order
 * of ops. Names, roles and order are Fluid's. */
#ifndef FL_BUILD_OPTIMIZER_H
#define FL_BUILD_OPTIMIZER_H

#include "build/args.h"
#include "build/net.h"

/* --- the table (optimizers.c) --- */

/* A variable that belongs to a parameter and lives from step to step. */
typedef struct fl_accumulator_def {
    const char *kind;     /* "moment1": part of its name; NULL ends a list */
    const char *in, *out; /* slots of the op; out NULL: the op only reads it */
    const char *start;    /* argument that is its start value; NULL: 0 */
    bool power;           /* [1]; a scale op after all updates multiplies it by
                           * the argument `start` */
} fl_accumulator_def;

typedef struct fl_optimizer_def {
    const char *op;  /* "adam" */
    const char *cls; /* Fluid's "Adam", also known as "AdamOptimizer" */
    const char *doc; /* a sentence or two */
    fl_arg_def args[FL_ARGS];
    fl_accumulator_def accumulators[5];
    struct {
        const char *name, *arg; /* arg NULL: of the same name */
    } attrs[8];
} fl_optimizer_def;

extern const fl_optimizer_def fl_optimizers[];
extern const int fl_optimizers_count;

/* By op or by either of Fluid's names. ENOENT names the nearest. */
fl_err fl_optimizer_find(const char *name,
                         const fl_optimizer_def **out) FL_MUST_CHECK;

/* --- an optimiser --- */

typedef struct fl_optimizer fl_optimizer; /* Thread: as its net */

/* learning_rate is a float, or a variable (n = 1) such as a schedule makes.
 * Own: *out is new; the net outlives it. */
fl_err fl_optimizer_new(fl_net *n, const char *name, const fl_arg *args,
                        fl_optimizer **out) FL_MUST_CHECK;
void fl_optimizer_free(fl_optimizer *o);

/* Gradients of `loss`, then their updates. out (may be NULL): parameters and
 * their raw gradients in order of creation. ops (may be NULL): the ops of the
 * update. Both are the caller's, fl_vec_fini. */
fl_err fl_optimizer_minimize(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out,
                             fl_ops *ops) FL_MUST_CHECK;

/* The two halves of minimize. Parameters are updated in order of their names;
 * gradients are clipped first, then decay is added. */
fl_err fl_optimizer_backward(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts,
                             fl_param_grads *out) FL_MUST_CHECK;
fl_err fl_optimizer_apply_gradients(fl_optimizer *o, const fl_param_grads *pgs,
                                    fl_ops *ops) FL_MUST_CHECK;

/* --- for optimisers of one's own --- */

/* The learning rate of a parameter: the optimiser's, times the parameter's own
 * where that is not 1. */
fl_err fl_optimizer_rate(fl_optimizer *o, const fl_var *param,
                         fl_var **out) FL_MUST_CHECK;

/* A persistable variable `<param>_<kind>_<n>` that starts as `start`; shape
 * NULL: the parameter's. EINVAL if there is one of that kind already. */
fl_err fl_optimizer_accumulator(fl_optimizer *o, const char *kind,
                                const fl_var *param, double start,
                                const fl_shape *shape,
                                fl_var **out) FL_MUST_CHECK;
fl_var *fl_optimizer_get(const fl_optimizer *o, const char *kind,
                         const fl_var *param); /* NULL: none */

/* --- what happens to gradients before the update --- */

/* clip.c: gradients become clipped ones, as each parameter's clip says. */
fl_err fl_clip_grads(fl_net *n, fl_param_grads *pgs) FL_MUST_CHECK;

/* Set the clip of these parameters, or of all (n_params 0). NULL: none. */
fl_err fl_net_set_clip(fl_net *n, const fl_clip *clip, int n_params,
                       const char *const *params) FL_MUST_CHECK;

/* decay.c: add each parameter's regularizer, or else this one (or NULL). */
fl_err fl_decay_grads(fl_net *n, const fl_regularizer *other,
                      fl_param_grads *pgs) FL_MUST_CHECK;

#endif
