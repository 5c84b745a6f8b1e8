/* SPDX-License-Identifier: Apache-2.0 */
/* gathered.h - the gradients of one variable that wait to be sent together.
 *
 * Tensors are added up. Selected rows are kept one after the other; equal rows
 * are added up when they are sent. */
#ifndef FL_TRAINER_GATHERED_H
#define FL_TRAINER_GATHERED_H

#include "tensor/value.h"

/* Thread: one at a time. Zero is empty. */
typedef struct fl_gathered {
    int64_t n;      /* gradients in `value`; the owner sets 0 to empty it */
    int64_t room;   /* rows that `value` has memory for */
    fl_value value; /* the sum, or all rows */
} fl_gathered;

void fl_gathered_fini(fl_gathered *g);

/* Copy the gradient v of a variable into g. All gradients since it was empty
 * have the kind, type and shape of the first. Err: ESHAPE, EINVAL. */
fl_err fl_gathered_add(fl_gathered *g, const char *name,
                       const fl_value *v) FL_MUST_CHECK;

/* A gradient that is made where it is needed: add(self, first, sum) adds it to
 * the sum, or writes it there if it is the first. */
typedef struct fl_addend {
    fl_dtype dtype;
    const fl_shape *shape;
    void (*add)(const void *self, bool first, void *sum);
    const void *self;
} fl_addend;

/* The same for a gradient that is not in memory. */
fl_err fl_gathered_make(fl_gathered *g, const char *name,
                        const fl_addend *x) FL_MUST_CHECK;

#endif
