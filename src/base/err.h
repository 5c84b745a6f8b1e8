/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - one error code and one sentence per failure.
 *
 * A function that can fail returns fl_err. It makes the sentence once, where
 * the fault is known (fl_fail), and callers pass the code on (FL_TRY). */
#ifndef FL_BASE_ERR_H
#define FL_BASE_ERR_H

#include "fluid.h"

#define FL_MUST_CHECK __attribute__((warn_unused_result))

/* Format the error message for the user and return `code`. Write it in lower
 * case, with the op or file first, both values, and no full stop. */
fl_err fl_fail(fl_err code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Append " (where)" to the last error message and return `code`. The level that
 * knows the place calls it, once. Nothing is appended for EENDED and EINTR:
 * their cause is elsewhere. */
fl_err fl_fail_at(fl_err code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Keeps the last error message across work that may itself fail. */
typedef struct fl_sentence {
    char text[1024];
} fl_sentence;

fl_sentence fl_sentence_keep(void);
void fl_sentence_restore(const fl_sentence *s);

/* Return the error of a call, if it has one. */
#define FL_TRY(call)                                                           \
    do {                                                                       \
        fl_err fl_try_ = (call);                                               \
        if (fl_try_)                                                           \
            return fl_try_;                                                    \
    } while (0)

#endif
