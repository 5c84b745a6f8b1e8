/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h - the AUC over all trainers of a job.
 *
 * Each keeps counts of its own in its scope, from its first pass on. They are
 * told to the coordinator (fl_trainer_tally) when the status is due and at the
 * end; of the sum that comes back the AUC is computed as the op does. Passes
 * that train and passes that do not are added up apart. */
#ifndef FL_TRAIN_MERGE_H
#define FL_TRAIN_MERGE_H

#include "train/worker.h"

/* Thread: one at a time. */
typedef struct fl_merge {
    fl_service *service;       /* NULL: there is nothing to add up */
    const fl_placement *place; /* NULL: the only job that there is */
    const char *key;           /* what the counts go by */
    const fl_value *stat[2]; /* of the scope, [steps, n]: positive, negative */
    bool pr;
    int64_t n;
    int64_t *counts; /* [2, n] */
    int64_t due;     /* ns since the start */
    double auc;      /* of the last answer, */
    int trainers;    /* of so many; 0: none came */
} fl_merge;

/* For the AUC that the team looks at. */
void fl_merge_init(fl_merge *m, const fl_team *t, const fl_exec_env *env,
                   fl_arena *a);

/* Tell and hear, if it is time: not again within some seconds, but at the end.
 * What fails is only logged. */
void fl_merge_tell(fl_merge *m, int64_t now, bool end);

void fl_merge_show(const fl_merge *m, fl_progress *p);

#endif
