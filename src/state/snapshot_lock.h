/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_lock.h - one job at a time writes into a directory of snapshots: two
 * would remove each other's.
 *
 *     BASE/      flock: against other jobs of this process (`paddle pserver`
 *                serves several)
 *     BASE/lock  a record lock: against other processes. It ends with its
 *                process, also if a child lives on, and names the process */
#ifndef FL_STATE_SNAPSHOT_LOCK_H
#define FL_STATE_SNAPSHOT_LOCK_H

#include "base/err.h"

typedef struct fl_snapshot_lock {
    int folder, file; /* descriptors; -1: that lock is not held */
} fl_snapshot_lock;

/* Take the lock of a directory, which is made if it is not there. Waits up to
 * `ms` milliseconds. A directory that cannot be written has no lock: the first
 * snapshot reports that. Err: ETIMEOUT: another job has it. */
fl_err fl_snapshot_lock_init(fl_snapshot_lock *l, const char *base,
                             int ms) FL_MUST_CHECK;
void fl_snapshot_lock_fini(fl_snapshot_lock *l);

#endif
