/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how many steps a process has done, for the launcher that started
 * it.
 *
 * The launcher gives each process a file in memory as descriptor
 * FL_PROGRESS_FD, and both map it: a step costs one addition. A process that
 * nobody has given such a file counts nothing. */
#ifndef FL_BASE_PROGRESS_H
#define FL_BASE_PROGRESS_H

#include "base/atomic.h"

enum {
    FL_PROGRESS_FD = 7
};

/* This process has done a step. Thread: any. */
void fl_progress_step(void);

/* The launcher's side: a file for a process, and the count in it. *fd is above
 * `least`; -1 and NULL: there is none. */
fl_count *fl_progress_new(int least, int *fd);
void fl_progress_free(fl_count *c); /* NULL is allowed */

#endif
