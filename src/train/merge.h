/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h - the AUC over all trainers of a job.
 *
 * Each trainer has its own counts in its scope. It reports them to the
 * coordinator (fl_trainer_tally) when the status is due and at the end, and
 * computes the AUC from the sum that is returned, as the op does. Passes that
 * train and passes that do not have separate sums. */
#ifndef FL_TRAIN_MERGE_H
#define FL_TRAIN_MERGE_H

#include "train/worker.h"

/* Thread: one at a time. */
typedef struct fl_merge {
    fl_service *service;       /* NULL: there is nothing to add up */
    const fl_placement *place; /* NULL: the only job of the process */
    const char *key;           /* name of the counts */
    const fl_value *stat[2];   /* counts in the scope: positive, negative */
    bool pr;
    int64_t n;
    int64_t *counts; /* [2, n] */
    int64_t due;     /* when to report next, ns since the start */
    double auc;      /* AUC of the last answer */
    int trainers;    /* number of trainers in the last answer; 0: none */
} fl_merge;

/* Set up the merge of the AUC that the team watches. */
void fl_merge_init(fl_merge *m, const fl_team *t, const fl_exec_env *env,
                   fl_arena *a);

/* Report the counts and get the sum, if some seconds have passed since the last
 * time, or at the end. Errors are only logged. */
void fl_merge_tell(fl_merge *m, int64_t now, bool end);

void fl_merge_show(const fl_merge *m, fl_progress *p);

#endif
