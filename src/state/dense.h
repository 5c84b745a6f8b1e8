/* SPDX-License-Identifier: Apache-2.0 */
/* dense.h - the memory of a server's dense variables.
 *
 * The catalogue has a line of text for each variable, in order; it is written
 * when a state is made, and compared when one is found. The memory of a
 * variable begins at a multiple of 64 bytes.
 *
 * A variable can have two slots of memory, of which one counts. While others
 * still read that one, its content is copied to the other slot, which then
 * counts:
 *
 *     1  the other slot gets the bytes
 *     2  the number of the slot that counts is stored
 *
 * Both slots have the same content then, so a kill in between changes nothing.
 *
 * Thread: one at a time uses a variable. */
#ifndef FL_STATE_DENSE_H
#define FL_STATE_DENSE_H

#include "state/statedir.h"

typedef struct fl_dense fl_dense;

fl_dense *fl_dense_new(void);
void fl_dense_free(fl_dense *d); /* NULL is fine */

/* Add a variable before the memory is mapped. `about`: its name, type and
 * shape. The number of the variable: 0, 1, 2 .. */
int64_t fl_dense_add(fl_dense *d, const char *about, size_t bytes);

/* Make or find the memory. Err: those of fl_statedir_map; EINVAL: the state
 * that was found has other variables. */
fl_err fl_dense_map(fl_dense *d, fl_statedir *dir) FL_MUST_CHECK;

/* The slot that counts. */
void *fl_dense_at(const fl_dense *d, int64_t number);

/* The other slot, which gets room when it is asked for first. Err: ENOMEM. */
fl_err fl_dense_other(fl_dense *d, int64_t number, void **at) FL_MUST_CHECK;

/* Copy a variable to its other slot, which has room and counts from now on. */
void *fl_dense_flip(fl_dense *d, int64_t number);

uint64_t fl_dense_offset(const fl_dense *d, const void *at);

/* `bytes` bytes at an offset of the memory; NULL: they are not in it. */
void *fl_dense_find(const fl_dense *d, uint64_t offset, size_t bytes);

/* What the memory of all variables lies in; it is counted. */
fl_mapping *fl_dense_mapping(const fl_dense *d);

#endif
