/* SPDX-License-Identifier: Apache-2.0 */
/* watching.h - the loss, the AUC and the speed of a training. */
#ifndef FL_TRAIN_WATCHING_H
#define FL_TRAIN_WATCHING_H

#include "train/worker.h"

/* Choose which variables are the loss (the one whose gradients are computed, or
 * a fetch named "loss") and the AUC (a fetch named "auc", or the last auc op).
 * Plans keep their values and those of all fetches. */
void fl_watched_init(fl_team *t, fl_arena *a);

/* Speed and loss of the last second or more. */
typedef struct fl_late {
    int64_t ns, examples; /* begin of the interval, and examples until then */
    double rate, loss;    /* of the last complete interval */
    bool known;
    double all_loss;
    int64_t all_losses;
} fl_late;

/* The progress of all workers, `now` ns after the start. At the end, rate and
 * loss are those of the whole pass. */
fl_progress fl_watched_look(fl_late *l, int n, fl_worker *workers, int64_t now,
                            bool end);

/* Set the fraction done / all; all 0: not known. */
void fl_watched_fraction(fl_progress *p, int64_t done, int64_t all);

#endif
