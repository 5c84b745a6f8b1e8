/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.h - optimisers, which minimise a loss.
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

/* A variable that belongs to a parameter and is kept from step to step. */
typedef struct fl_accumulator_def {
    const char *kind;     /* "moment1": part of its name; NULL ends a list */
    const char *in, *out; /* input and output slot of the op; out NULL: the op
                             only reads it */
    const char *start;    /* argument with its initial value; NULL: 0 */
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
        const char *name, *arg; /* arg NULL: same as name */
    } attrs[8];
} fl_optimizer_def;

extern const fl_optimizer_def fl_optimizers[];
extern const int fl_optimizers_count;

/* Find an optimiser by its op or by either of Fluid's names. Err: ENOENT; the
 * message suggests the nearest name. */
fl_err fl_optimizer_find(const char *name,
                         const fl_optimizer_def **out) FL_MUST_CHECK;

#endif
