/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - one operator of a program, ready to run.
 *
 * A frame binds names to values once. It must be prepared before a run whose
 * shapes may differ from those of the last run: the shape rule runs on the
 * actual shapes of the inputs, and the outputs get their memory. Then the
 * kernel runs. */
#ifndef FL_OP_FRAME_H
#define FL_OP_FRAME_H

#include "op/op.h"

/* Thread: one at a time. */
typedef struct fl_frame {
    fl_call call;
    fl_infer infer;
    const fl_desc *desc; /* names, for error messages */
    fl_meta *meta_in,
        *meta_out; /* the metas that `infer` points to, slot after slot */
} fl_frame;

/* The value of a name; NULL: an error, which fl_fail has described. */
typedef fl_value *(*fl_resolve)(void *self, const char *name);

/* Own: memory is in the arena. `resolve` is not called for "@EMPTY@". Err:
 * EINVAL: two outputs are the same variable; errors of `resolve`. */
fl_err fl_frame_init(fl_frame *f, fl_arena *a, const fl_op_def *def,
                     const fl_desc *desc, const fl_hooks *hooks, void *runner,
                     fl_resolve resolve, void *self) FL_MUST_CHECK;
void fl_frame_fini(fl_frame *f);

/* Whether the shapes of its outputs may change while those of its inputs do
 * not. */
bool fl_frame_moves(const fl_frame *f);

/* The first input variable that must hold a value and does not; NULL: none. */
const char *fl_frame_empty(const fl_frame *f);

fl_err fl_frame_prepare(fl_frame *f) FL_MUST_CHECK;
/* The number of frames prepared on any thread so far. Tests check that a
 * steady step prepares none. */
uint64_t fl_frame_prepared(void);
fl_err fl_frame_run(fl_frame *f) FL_MUST_CHECK;

#endif
