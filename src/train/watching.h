/* SPDX-License-Identifier: Apache-2.0 */
/* watching.h - what of a training is looked at: loss, AUC, rates. */
#ifndef FL_TRAIN_WATCHING_H
#define FL_TRAIN_WATCHING_H

#include "train/worker.h"

/* Choose the loss (that which gradients start from, or a fetch called so) and
 * the AUC (a fetch called so, or the last that is computed); plans keep them
 * and all fetches. */
void fl_watched_init(fl_team *t, fl_arena *a);

/* The last second or more. */
typedef struct fl_late {
    int64_t ns, examples; /* since when, and what was done by then */
    double rate, loss;    /* of the second before; 0 losses: none yet */
    bool known;
    double all_loss;
    int64_t all_losses;
} fl_late;

/* What workers have done, `now` ns after the start. At the end of it all rate
 * and loss are those of the whole pass. */
fl_progress fl_watched_look(fl_late *l, int n, fl_worker *workers, int64_t now,
                            bool end);

/* So much of so much is done (0: not known). */
void fl_watched_fraction(fl_progress *p, int64_t done, int64_t all);

#endif
