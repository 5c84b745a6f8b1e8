/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.h - a file as memory that outlives the process.
 *
 * The file is mapped shared: what was stored is in the file, whatever happens
 * to the process. All bytes of the file have room on its file system before
 * they are touched, because a store to a hole of a full tmpfs is a SIGBUS. A
 * child that is forked does not have the memory.
 *
 * A mapping can grow in place up to the size that was reserved for it: the
 * reserve takes addresses, not memory. Room of FL_HUGE_PAGE bytes or more is
 * on huge pages where the kernel has them. */
#ifndef FL_STATE_MAPPING_H
#define FL_STATE_MAPPING_H

#include "base/err.h"

typedef struct fl_mapping fl_mapping;

/* Make a file of `size` bytes of zero. `reserve` 0: it never grows. Own: *out
 * is new, with one reference. Err: EIO; ENOMEM: its file system is full, and
 * there is no file. */
fl_err fl_mapping_make(const char *path, size_t size, size_t reserve,
                       fl_mapping **out) FL_MUST_CHECK;

/* Map a file that is there. Err: ENOENT, EIO. */
fl_err fl_mapping_find(const char *path, size_t reserve,
                       fl_mapping **out) FL_MUST_CHECK;

fl_mapping *fl_mapping_ref(fl_mapping *m);
void fl_mapping_unref(fl_mapping *m); /* NULL is fine; the file stays */

/* Make the file larger; it is fine if it is so already. What is new is zeroed,
 * and the address does not change. Err: ENOMEM, and nothing has changed. */
fl_err fl_mapping_grow(fl_mapping *m, size_t size) FL_MUST_CHECK;

/* Give the bytes from .. to of the file room on its file system; those between
 * its end and `from` must not be touched. Err: as fl_mapping_grow. */
fl_err fl_mapping_extend(fl_mapping *m, size_t from, size_t to) FL_MUST_CHECK;

/* Give back the memory behind the first `size` bytes. */
void fl_mapping_shrink(fl_mapping *m, size_t size);

void *fl_mapping_at(const fl_mapping *m);
size_t fl_mapping_size(const fl_mapping *m);
const char *fl_mapping_path(const fl_mapping *m);

#endif
