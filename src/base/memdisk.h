/* SPDX-License-Identifier: Apache-2.0 */
/* memdisk.h - a disk in memory that fails when told to.
 *
 * For tests and the simulator. A directory exists if a file has it in its path.
 * A crash loses bytes that were not synced, and changes of names in directories
 * that were not synced. */
#ifndef FL_BASE_MEMDISK_H
#define FL_BASE_MEMDISK_H

#include "base/disk.h"

typedef struct fl_memdisk fl_memdisk; /* Thread: one at a time */

fl_memdisk *fl_memdisk_new(void);
void fl_memdisk_free(fl_memdisk *m); /* after every file was closed */
const fl_disk *fl_memdisk_disk(fl_memdisk *m);

/* After n more changes (open, write, append, sync, persist, remove, rename,
 * mkdirs, lock) each further one fails with EIO, as if the process were killed
 * there; an append that fails writes half of its bytes. -1: no change fails. */
void fl_memdisk_fail_after(fl_memdisk *m, int64_t n);
/* The same, but only one change fails. */
void fl_memdisk_fail_once(fl_memdisk *m, int64_t n);

/* After n more bytes the disk is full: an append writes what fits and fails
 * with errno ENOSPC. -1: no limit. */
void fl_memdisk_fill(fl_memdisk *m, int64_t n);

/* Simulate a loss of power. With names_survive all changes of names have
 * reached the disk, also those that were not synced; bytes that were not synced
 * are lost. */
void fl_memdisk_crash(fl_memdisk *m, bool names_survive);

#endif
