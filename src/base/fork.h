/* SPDX-License-Identifier: Apache-2.0 */
/* fork.h - a mark that a forked child does not see. To compare process ids in
 * its place takes a system call each time. */
#ifndef FL_BASE_FORK_H
#define FL_BASE_FORK_H

#include <stdbool.h>

typedef struct fl_fork_mark fl_fork_mark;

fl_fork_mark *fl_fork_mark_new(void);
void fl_fork_mark_free(fl_fork_mark *m); /* NULL is allowed */

/* Whether this process was forked after the mark was made. Thread: any. */
bool fl_fork_mark_is_lost(const fl_fork_mark *m);

#endif
