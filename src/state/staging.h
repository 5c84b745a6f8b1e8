/* SPDX-License-Identifier: Apache-2.0 */
/* staging.h - pushes that wait for their round to close, in memory that
 * outlives the process.
 *
 *     1  room is taken, and the bytes of the push are copied into it
 *     2  an entry says whose push it is and where it lies
 *     3  the count of entries goes up: from now on the push is kept
 *
 * Room without an entry is free after a restart. When the round has closed and
 * its version is written down, the entries of the round are dropped.
 *
 * Thread: any. */
#ifndef FL_STATE_STAGING_H
#define FL_STATE_STAGING_H

#include "state/statedir.h"

typedef struct fl_staging fl_staging;

/* A push and where its bytes lie. */
typedef struct fl_staging_entry {
    uint64_t session[2];
    int64_t rank, seq, round, count; /* as in the message */
    void *at;
    size_t size;
} fl_staging_entry;

/* Own: *out is new; d outlives it. Err: those of fl_statedir_map; EINVAL: an
 * entry that was found is damaged. */
fl_err fl_staging_new(fl_statedir *d, size_t limit,
                      fl_staging **out) FL_MUST_CHECK;
void fl_staging_free(fl_staging *s); /* NULL is fine */

/* Take room for `size` bytes, whose byte number `aligned` lies at a multiple of
 * 64. Own: until fl_staging_give. Err: ENOMEM, which names the directory. */
fl_err fl_staging_take(fl_staging *s, size_t size, size_t aligned,
                       void **at) FL_MUST_CHECK;

/* Room is not read any more. If an entry names it, it is free once the entry is
 * dropped. */
void fl_staging_give(fl_staging *s, void *at);

/* Keep a push whose bytes are in room that was taken. */
void fl_staging_keep(fl_staging *s, const fl_staging_entry *e);

/* Drop all entries of rounds below `version`. */
void fl_staging_close(fl_staging *s, int64_t version);

/* Drop the entries of a session that takes part in no round any more. */
void fl_staging_forget(fl_staging *s, const uint64_t session[2]);

/* After a restart: the next entry of the state that was found, whose room is
 * taken; *cursor is 0 at first. False: there is no more. */
bool fl_staging_next(const fl_staging *s, int64_t *cursor,
                     fl_staging_entry *out);

#endif
