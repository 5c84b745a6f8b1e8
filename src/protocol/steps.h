/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - which pushes of the trainers' steps a server has applied.
 *
 * Asynchronous jobs only. A trainer that takes a rank makes the last step of
 * the rank again, if it may not count, with the same pushes. Those that were
 * applied must have no effect, whichever session sent them. So for each rank
 * the server knows its newest step that has a position, and the parts of it
 * that are applied: the number of a push within its step. All pushes of earlier
 * steps are applied.
 *
 * Thread: one at a time. */
#ifndef FL_PROTOCOL_STEPS_H
#define FL_PROTOCOL_STEPS_H

#include "protocol/image.h"

typedef struct fl_steps fl_steps;

/* For the ranks 0 .. ranks - 1; none has made a step. Own: new. */
fl_steps *fl_steps_new(int ranks);
fl_steps *fl_steps_dup(const fl_steps *s);
void fl_steps_free(fl_steps *s); /* NULL is fine */

/* Whether part `part` of a step was applied. Both count from 1. */
bool fl_steps_has(const fl_steps *s, int rank, int64_t step, int64_t part);

/* It is applied now; step 0: the push is of no step. */
void fl_steps_mark(fl_steps *s, int rank, int64_t step, int64_t part);

void fl_steps_visit(fl_steps *s, fl_image *im);

#endif
