/* SPDX-License-Identifier: Apache-2.0 */
/* directory.h - which extents a table has, in a file that outlives the process.
 *
 * An entry names the memory of the segment whose hashes begin with the bits of
 * the entry's slot. A segment of fewer bits has several entries, which are the
 * same. Entries that change together are written down before, so that a process
 * that is started again finds all of them as they were or all as they are to
 * be.
 *
 * Thread: one at a time. */
#ifndef FL_TABLE_DIRECTORY_H
#define FL_TABLE_DIRECTORY_H

#include "state/statedir.h"

enum {
    FL_DIRECTORY_BITS = 10, /* of a hash that select the slot */
    FL_DIRECTORY_SLOTS = 1 << FL_DIRECTORY_BITS,
};

typedef struct fl_directory fl_directory;

/* A directory of another layout is of no use. */
typedef struct fl_directory_layout {
    uint64_t stride, bucket_bytes, key; /* of the rows */
} fl_directory_layout;

typedef struct fl_directory_entry {
    uint32_t extent; /* number of the memory; from 1 on */
    int depth;       /* number of first bits that all hashes share */
} fl_directory_entry;

/* Find the directory of table `number` in a state, or begin an empty one. Own:
 * *out is new. Err: EINVAL: it is damaged, or of another layout; those of
 * fl_statedir_map. */
fl_err fl_directory_open(fl_statedir *dir, int number,
                         const fl_directory_layout *layout,
                         fl_directory **out) FL_MUST_CHECK;
void fl_directory_free(fl_directory *d); /* NULL is fine; the file stays */

/* The entry of a slot. False: the directory is empty. */
bool fl_directory_get(const fl_directory *d, int slot, fl_directory_entry *out);

/* Let `slots` entries from `first` on name two extents, each half of them one.
 * Both may be the same; with one slot they are. */
void fl_directory_set(fl_directory *d, int first, int slots,
                      const fl_directory_entry to[2]);

/* Err: EINVAL: the directory does not fit to its extents; `what` says how. */
fl_err fl_directory_damaged(const fl_directory *d, const char *what);

#endif
