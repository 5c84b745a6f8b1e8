/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - one error code and one sentence per failure.
 *
 * A function that can fail returns fl_err. It makes the sentence once, where
 * the fault is known (fl_fail), and callers pass the code on (FL_TRY). */
#ifndef FL_BASE_ERR_H
#define FL_BASE_ERR_H

#include "fluid.h"

#define FL_MUST_CHECK __attribute__((warn_unused_result))

/* Format the sentence for the user, return `code`. Lower case, the op or file
 * first, both values, no full stop. */
fl_err fl_fail(fl_err code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Append " (where)" to the last sentence, return `code`: place is added once,
 * by the level that knows it. */
fl_err fl_fail_at(fl_err code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The last sentence, to be put back after work that may fail itself. */
typedef struct fl_sentence {
    char text[1024];
} fl_sentence;

fl_sentence fl_sentence_keep(void);
void fl_sentence_restore(const fl_sentence *s);

/* Pass a failure on. */
#define FL_TRY(call)                                                           \
    do {                                                                       \
        fl_err fl_try_ = (call);                                               \
        if (fl_try_)                                                           \
            return fl_try_;                                                    \
    } while (0)

#endif
