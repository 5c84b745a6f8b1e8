/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - a program split for several places: ops that run on every place
 * with its rows of the batch, and ops that run once, after the gradients of all
 * places were summed. */
#ifndef FL_EXEC_SPLIT_H
#define FL_EXEC_SPLIT_H

#include "exec/plan.h"

/* A variable that the part of every place writes and the part that runs once
 * reads. */
typedef struct fl_crossing {
    const char *name;
    bool sum; /* the variable is a gradient: the values of all places are
                 summed; otherwise the value of the first place is used */
} fl_crossing;

/* Names are borrowed from the program. */
typedef struct fl_places_split {
    bool *each, *once; /* for each op of the global block, in which part */
    FL_VEC(fl_crossing) crossing;
    FL_VEC(const char *)
    state;           /* persistable variables that the part of every
                        place writes */
    FL_VEC(int) fed; /* feeds that the part that runs once reads */
    fl_map
        settled; /* names whose final value is set by the part that runs once */
} fl_places_split;

/* With own_seed the caller feeds the start value of the loss gradient. The
 * program must outlive *h. Call fl_places_split_fini after an error too. Err:
 * EINVAL if an op reads both rows of the batch and a variable that an update
 * has changed. */
fl_err fl_places_split_init(fl_places_split *h, const fl_request *o,
                            bool own_seed) FL_MUST_CHECK;
void fl_places_split_fini(fl_places_split *h);

/* Whether the variable has one value for all places after both parts ran. */
bool fl_places_split_common(const fl_places_split *h, const fl_program *p,
                            const char *name);

#endif
