/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - what operators over sequences share.
 *
 * The last level of a tensor's LoD divides its rows into sequences. */
#ifndef FL_KERNEL_SEQUENCE_H
#define FL_KERNEL_SEQUENCE_H

#include "op/op.h"

/* Check that input i of `slot` has rows and, when the operator runs, sequences
 * that agree with the number of rows. Error: "sequence_pool: X has no sequences
 * (LoD)". */
fl_err fl_sequence_check(const fl_infer *x, const char *slot,
                         int i) FL_MUST_CHECK;

/* Sequence s of n has the rows [off[s], off[s + 1]). */
typedef struct fl_sequences {
    int64_t n;
    const int64_t *off;
} fl_sequences;
fl_sequences fl_sequences_of(const fl_lod *l);

/* A LoD of one level with `n` offsets, which are borrowed from the caller. */
fl_lod fl_sequence_lod(int64_t n, const int64_t *off);

/* The number of elements in a row. */
int64_t fl_sequence_width(const fl_tensor *t);

#endif
