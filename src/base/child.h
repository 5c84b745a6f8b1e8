/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - runs a shell command with a file as its stdin, and reads its
 * stdout.
 *
 * The last lines of its stderr are kept, for error messages; the rest is
 * dropped. The command is a process group of its own. The group is killed when
 * the handle is freed, and when this process ends, even if it is killed. */
#ifndef FL_BASE_CHILD_H
#define FL_BASE_CHILD_H

#include "base/err.h"

typedef struct fl_child fl_child; /* Thread: one at a time */

/* Run `command` by /bin/sh with the descriptor `in` as its stdin; the caller
 * still owns the descriptor. PYTHONHASHSEED is 0 unless the environment sets
 * it, so that all readers compute the same hashes. Own: *out. Err: EIO. */
fl_err fl_child_new(const char *command, int in, fl_child **out) FL_MUST_CHECK;

/* Read up to n bytes of its stdout. *got 0: it has ended with code 0. Err: EIO
 * (it failed: the message has its code or signal and its last lines of stderr),
 * EINTR (the descriptor `cancel` became readable; -1: none), ETIMEOUT (no
 * output for so many ns; -1: no limit). After ETIMEOUT reading may go on. */
fl_err fl_child_read(fl_child *c, void *buf, size_t n, int cancel,
                     int64_t timeout, size_t *got) FL_MUST_CHECK;

/* Kill the command and all processes that it started. NULL is fine. */
void fl_child_free(fl_child *c);

#endif
