/* SPDX-License-Identifier: Apache-2.0 */
/* extents.h - memory of tables that outlives the process: numbered files.
 *
 * An extent has a size that never changes. Which extents are in use is known
 * to their tables alone: after a restart each table asks for its own, and those
 * that nobody asked for are removed.
 *
 * Thread: any. */
#ifndef FL_STATE_EXTENTS_H
#define FL_STATE_EXTENTS_H

#include "state/statedir.h"

typedef struct fl_extents fl_extents;

/* Own: new; d outlives it. */
fl_extents *fl_extents_new(fl_statedir *d);
void fl_extents_free(fl_extents *e); /* NULL is fine; the files stay */

/* A new extent of zeroed bytes. Own: *at, until fl_extents_drop. Err: ENOMEM,
 * which names the directory; EIO. */
fl_err fl_extents_make(fl_extents *e, size_t bytes, void **at) FL_MUST_CHECK;
void fl_extents_drop(fl_extents *e, void *at); /* its file is removed */

/* The number of an extent, by its memory: 1, 2, 3 .. */
uint32_t fl_extents_number(const fl_extents *e, const void *at);

/* After a restart: the extent of that number. Err: ENOENT, EIO. */
fl_err fl_extents_find(fl_extents *e, uint32_t number, void **at,
                       size_t *bytes) FL_MUST_CHECK;

/* After a restart, when all tables have found theirs: remove the others. */
void fl_extents_sweep(fl_extents *e);

/* `bytes` bytes at an offset of an extent; NULL: there are none. */
void *fl_extents_place(const fl_extents *e, uint32_t number, uint64_t offset,
                       size_t bytes);

#endif
