/* halves.h - a program cut for several places: ops that run on every place,
 * with its rows of the batch, and ops that run once, when the gradients of all
 * places are one. */
#ifndef FL_EXEC_HALVES_H
#define FL_EXEC_HALVES_H

#include "exec/plan.h"

/* A variable that the first half writes and the second reads. */
typedef struct fl_crossing {
    const char *name;
    bool sum; /* a gradient: places add up; else the first place's is taken */
} fl_crossing;

/* Names are the program's. */
typedef struct fl_halves {
    bool *each, *once; /* by op of the global block */
    FL_VEC(fl_crossing) crossing;
    FL_VEC(const char *) state; /* persistable, and each place may write it */
    FL_VEC(int) fed;            /* feeds that the second half reads, too */
    fl_map settled; /* names whose value is what the second half leaves */
} fl_halves;

/* With own_seed the user feeds what the gradient of the loss starts with.
 * EINVAL: an op reads what the update has changed together with rows of the
 * batch. The program outlives *h, which ends with fini, after failures too. */
fl_err fl_halves_init(fl_halves *h, const fl_order *o,
                      bool own_seed) FL_MUST_CHECK;
void fl_halves_fini(fl_halves *h);

/* Is it one value for all places, once the second half is done? */
bool fl_halves_common(const fl_halves *h, const fl_program *p,
                      const char *name);

#endif
