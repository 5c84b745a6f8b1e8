/* SPDX-License-Identifier: Apache-2.0 */
/* hostile.h - random programs of one operator, as an enemy would write them.
 *
 * Bytes choose an operator of the registry, its inputs (shapes that nearly fit,
 * empty ones, other types, LoD, selected rows, one variable twice), its
 * attributes and its outputs. The operator runs; where that went well, so does
 * its gradient, often with one input exchanged. A rule or a kernel may refuse
 * any of it with a sentence. The process aborts where an output is not what the
 * library promises, and the sanitizers see the rest. Fuzzers and tests only. */
#ifndef FL_CHECK_HOSTILE_H
#define FL_CHECK_HOSTILE_H

#include "op/op.h"

typedef struct fl_hostile_result {
    const fl_op_def *def; /* the operator that was chosen */
    bool ran, grad_ran;   /* the kernel, the gradient's kernel returned FL_OK */
} fl_hostile_result;

fl_hostile_result fl_hostile_run(const fl_registry *r, const uint8_t *bytes,
                                 size_t n);

#endif
