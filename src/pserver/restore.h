/* SPDX-License-Identifier: Apache-2.0 */
/* restore.h - a snapshot that a server begins with.
 *
 * If as many servers wrote it, a server reads its own part; else it reads all
 * parts, and takes what it is to hold now. A server other than 0 whose
 * directory has nothing but its own part reads that. */
#ifndef FL_PSERVER_RESTORE_H
#define FL_PSERVER_RESTORE_H

#include "cluster/placement.h"
#include "state/snapshot.h"
#include "table/table.h"

typedef struct fl_restore fl_restore;

/* Open a whole snapshot; all bytes that are read from it later are checked.
 * Own: *out is new. Err: ENOENT: it is not there; EINVAL: it is of another job;
 * EPROTO: it is damaged; EIO. */
fl_err fl_restore_open(const fl_disk *disk, const char *base, int64_t number,
                       const fl_placement *place, const fl_job *job,
                       fl_restore **out) FL_MUST_CHECK;
void fl_restore_close(fl_restore *r); /* NULL is fine */

const fl_snapshot_job *fl_restore_job(const fl_restore *r);
int64_t fl_restore_version(const fl_restore *r); /* of the values */

/* What the snapshot has of the coordinator, and of this server: the latter is
 * empty if another number of servers wrote it. */
const fl_str *fl_restore_coordinator(const fl_restore *r);
const fl_str *fl_restore_server(const fl_restore *r);

/* Fill a tensor, which begins at element `first` of the variable. Err: EINVAL:
 * the snapshot does not have all of it; EIO. */
fl_err fl_restore_tensor(const fl_restore *r, const char *var, int64_t first,
                         fl_tensor *to) FL_MUST_CHECK;

/* Add the rows of this server to an empty table. Err: EINVAL, ENOMEM, EIO. */
fl_err fl_restore_table(const fl_restore *r, const char *name,
                        const fl_placement *place, fl_table *to) FL_MUST_CHECK;

#endif
