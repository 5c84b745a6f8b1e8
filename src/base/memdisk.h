/* memdisk.h - a disk in memory that fails when told to.
 *
 * For tests and the simulator. Directories are whatever stands before a slash
 * in a name. A crash forgets what was appended and not synced. */
#ifndef FL_BASE_MEMDISK_H
#define FL_BASE_MEMDISK_H

#include "base/disk.h"

typedef struct fl_memdisk fl_memdisk; /* Thread: one at a time */

fl_memdisk *fl_memdisk_new(void);
void fl_memdisk_free(fl_memdisk *m); /* after every file was closed */
const fl_disk *fl_memdisk_disk(fl_memdisk *m);

/* Let n more changes (write, append, sync, remove, rename) pass, then fail
 * each with EIO; an append that fails leaves half of its bytes, as a full disk
 * does. -1: never. */
void fl_memdisk_fail_after(fl_memdisk *m, int64_t n);

void fl_memdisk_crash(fl_memdisk *m);

#endif
