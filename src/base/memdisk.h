/* SPDX-License-Identifier: Apache-2.0 */
/* memdisk.h - a disk in memory that fails when told to.
 *
 * For tests and the simulator. Directories are whatever stands before a slash
 * in a name. A crash forgets bytes that were not synced, and changes of names
 * whose directory was not. */
#ifndef FL_BASE_MEMDISK_H
#define FL_BASE_MEMDISK_H

#include "base/disk.h"

typedef struct fl_memdisk fl_memdisk; /* Thread: one at a time */

fl_memdisk *fl_memdisk_new(void);
void fl_memdisk_free(fl_memdisk *m); /* after every file was closed */
const fl_disk *fl_memdisk_disk(fl_memdisk *m);

/* Let n more changes pass (open, write, append, sync, persist, remove, rename,
 * mkdirs, lock), then fail each with EIO, as if the process were killed there;
 * an append that fails leaves half of its bytes. -1: never. */
void fl_memdisk_fail_after(fl_memdisk *m, int64_t n);
/* The same, but only one fails: a disk that was full for a moment. */
void fl_memdisk_fail_once(fl_memdisk *m, int64_t n);

/* Let n more bytes be appended; then the disk is full, errno ENOSPC: an append
 * leaves what fits. -1: there is room for all. */
void fl_memdisk_fill(fl_memdisk *m, int64_t n);

/* The power is lost. With names_survive every change of names has reached the
 * disk, though nobody asked for it; bytes are forgotten all the same. */
void fl_memdisk_crash(fl_memdisk *m, bool names_survive);

#endif
