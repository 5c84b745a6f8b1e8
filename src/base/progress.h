/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how many steps a process has done, for the launcher that started
 * it.
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

/* Count a step of this process. Thread: any. */
void fl_progress_step(void);

/* For the launcher: make the file for a process, map it, and return the count
 * in it. *fd is above `least`. NULL, with *fd -1: it could not be made. */
fl_count *fl_progress_new(int least, int *fd);
void fl_progress_free(fl_count *c); /* NULL is allowed */

#endif
