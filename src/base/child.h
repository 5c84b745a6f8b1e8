/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a shell command with a file on its stdin, and what it writes.
 *
 * Its stdout is read here; of its stderr the last words are kept and the rest
 * is dropped, so that a flood neither blocks it nor grows us. It is a process
 * group of its own, which ends with the handle, whatever it has started, and
 * with us, also if we are killed. */
#ifndef FL_BASE_CHILD_H
#define FL_BASE_CHILD_H

#include "base/err.h"

typedef struct fl_child fl_child; /* Thread: one at a time */

/* Run `command` by /bin/sh with the descriptor `in` as its stdin; that stays
 * the caller's. PYTHONHASHSEED is 0 for it unless the environment has one, so
 * that every reader hashes alike. Own: *out. Err: EIO. */
fl_err fl_child_new(const char *command, int in, fl_child **out) FL_MUST_CHECK;

/* Up to n bytes of its stdout; *got 0: it has ended well. Err: EIO (it failed:
 * the code or signal, and its last words), EINTR (`cancel`, a descriptor,
 * became readable; -1: never), ETIMEOUT (nothing for so many ns; -1: for ever);
 * after that it may be read on. */
fl_err fl_child_read(fl_child *c, void *buf, size_t n, int cancel,
                     int64_t timeout, size_t *got) FL_MUST_CHECK;

/* It, and all that it started, is killed if still there. NULL is fine. */
void fl_child_free(fl_child *c);

#endif
