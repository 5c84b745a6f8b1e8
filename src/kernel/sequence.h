/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - what operators over sequences share.
 *
 * The last level of a tensor's LoD cuts its rows into sequences. */
#ifndef FL_KERNEL_SEQUENCE_H
#define FL_KERNEL_SEQUENCE_H

#include "op/op.h"

/* Input i of `slot` has rows, and when it runs, sequences that fit them:
 * "sequence_pool: X has no sequences (LoD)". */
fl_err fl_sequence_check(const fl_infer *x, const char *slot,
                         int i) FL_MUST_CHECK;

/* Sequence s of n has the rows [off[s], off[s + 1]). */
typedef struct fl_sequences {
    int64_t n;
    const int64_t *off;
} fl_sequences;
fl_sequences fl_sequences_of(const fl_lod *l);

/* A LoD of one level over `n` offsets, which stay the caller's. */
fl_lod fl_sequence_lod(int64_t n, const int64_t *off);

/* Elements of a row. */
int64_t fl_sequence_width(const fl_tensor *t);

#endif
