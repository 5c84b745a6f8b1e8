/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - owners that need room on the file system of the state.
 *
 * An owner takes the room that an update needs before the update writes a
 * value. If there is none, the owner waits in the middle of its task, answers
 * pulls, reads rows for a snapshot, and tries again until there is room.
 * Therefore these calls to an owner, which only read, are queued here.
 *
 * Thread: any, unless a function says something else. */
#ifndef FL_PSERVER_ROOM_H
#define FL_PSERVER_ROOM_H

#include "base/err.h"

#include <stdbool.h>

typedef struct fl_room fl_room;

typedef struct fl_room_opts {
    int owners;
    /* The owner has no room; `why` names the path and the bytes that are
     * missing. Called for each try. True: wait. NULL, false: what lacks room
     * fails. Thread: the owner. */
    bool (*full)(void *self, int owner, const char *why);
    void *self;
} fl_room_opts;

/* Own: new. */
fl_room *fl_room_new(const fl_room_opts *opts);
void fl_room_free(fl_room *r); /* NULL is fine; no owner may wait */

/* From now on nobody waits: what lacks room fails. */
void fl_room_end(fl_room *r);

/* Add a call that reads values of the owner. The caller gives the owner a task
 * that calls fl_room_read. */
void fl_room_add(fl_room *r, int owner, void (*fn)(void *arg), void *arg);

/* Run the oldest call of the owner. False: there is none: the owner has run it
 * while it waited. Thread: the owner. */
bool fl_room_read(fl_room *r, int owner);

/* Call fn, which takes room, until it does not set *lacks. If it sets *lacks it
 * has failed and changed nothing. A value that the owner is about to write may
 * not be claimed yet, because a pull that is read meanwhile may share it. Err:
 * that of fn. Blocks: until there is room. Thread: the owner. */
fl_err fl_room_take(fl_room *r, int owner, fl_err (*fn)(void *of, bool *lacks),
                    void *of) FL_MUST_CHECK;

/* Err: ENOMEM: an owner waits; the sentence is the one that `full` got. */
fl_err fl_room_check(fl_room *r) FL_MUST_CHECK;

#endif
