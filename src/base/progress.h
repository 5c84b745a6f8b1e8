/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far a process is, for the launcher that started it.
 *
 * The launcher gives each process a file in memory as descriptor
 * FL_PROGRESS_FD, and both map it: a step costs one addition. A process without
 * such a descriptor counts nothing. */
#ifndef FL_BASE_PROGRESS_H
#define FL_BASE_PROGRESS_H

#include "base/atomic.h"

enum {
    FL_PROGRESS_FD = 7
};

/* Bits of what a process has reached. A kill of a trainer after both loses
 * nothing; nor does one of a server after the first. */
enum {
    FL_REACHED_COMPLETION = 1, /* a trainer has left its job with code 0; the
                                  job of a server has ended with code 0 */
    FL_REACHED_EXIT = 2,       /* its script has come to its end */
};

/* The content of the file. Thread: any. */
typedef struct fl_progress_page {
    fl_count steps;
    fl_count reached; /* FL_REACHED_ */
} fl_progress_page;

/* Count a step of this process. Thread: any. */
void fl_progress_step(void);
/* Set a bit of what this process has reached. Thread: any. */
void fl_progress_reach(int bit);

/* For the launcher: make the file for a process and map it. *fd is above
 * `least`. NULL, with *fd -1: it could not be made. Own: fl_progress_free. */
fl_progress_page *fl_progress_new(int least, int *fd);
void fl_progress_free(fl_progress_page *p); /* NULL is allowed */

#endif
