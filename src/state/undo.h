/* SPDX-License-Identifier: Apache-2.0 */
/* undo.h - how far an owner thread has come with its task, and how to take
 * back what it was writing when its process was killed.
 *
 * A task (a round, or a push) is a list of updates, and an update is a list of
 * blocks. A block is written in place:
 *
 *     1  the undo log gets the old bytes of all places of the block
 *     2  cursor = (task, update, block, live)
 *     3  the block is written
 *     4  cursor = (task, update, block + 1, not live)
 *
 * The cursor is one word. After a kill the old bytes are copied back if the
 * cursor is live; the task then goes on at the cursor. Blocks before the cursor
 * are written, the others have their old bytes: so each is computed once, from
 * the same bytes as without the kill.
 *
 * A place is a number of bytes at an offset of a space: space 0 is the memory
 * of dense variables, the others are extents of tables.
 *
 * Learning rates have a log of their own. It holds what they wrote over when
 * they ran last, as long as their results are in use: copied back and run once
 * more, they also give the values that are not kept.
 *
 * Thread: the owner. */
#ifndef FL_STATE_UNDO_H
#define FL_STATE_UNDO_H

#include "state/statedir.h"

typedef struct fl_undo fl_undo;

/* What a task is, for the process that goes on with it. */
typedef struct fl_undo_task {
    uint64_t session[2]; /* asynchronous: of the push */
    int64_t seq;         /* asynchronous: of the push */
    int64_t rank;        /* asynchronous: of the trainer */
    bool last;           /* asynchronous: it is the last push of a step */
    bool rates_due;      /* the learning rates run before its first update */
} fl_undo_task;

/* The memory of `bytes` bytes at an offset of a space; NULL: there is none. */
typedef struct fl_spaces {
    void *self;
    void *(*find)(void *self, uint32_t space, uint64_t offset, size_t bytes);
} fl_spaces;

enum {
    FL_UNDO_UPDATES = 1 << 15 /* updates of a task at most */
};

/* Own: *out is new; d outlives it. Err: those of fl_statedir_map. */
fl_err fl_undo_new(fl_statedir *d, int owner, fl_undo **out) FL_MUST_CHECK;
void fl_undo_free(fl_undo *u); /* NULL is fine */

/* Copy back what a kill left half written, and what the learning rates wrote
 * over when they ran last. Doing it twice is the same as once.
 * Err: EINVAL: the log is damaged. */
fl_err fl_undo_recover(fl_undo *u, const fl_spaces *in) FL_MUST_CHECK;

/* Tasks that are finished: the number of the next one. */
int64_t fl_undo_done(const fl_undo *u);

/* Whether a task was begun and is not finished; *task is then that task. */
bool fl_undo_interrupted(const fl_undo *u, fl_undo_task *task);

/* Whether the learning rates are due before the next task. */
bool fl_undo_rates_due(const fl_undo *u);

/* In a new state: that many tasks are finished. */
void fl_undo_start(fl_undo *u, int64_t done);

/* Begin a task, or go on with it if it was interrupted. */
void fl_undo_begin(fl_undo *u, const fl_undo_task *task);

/* Begin an update of the task. False: it was finished before. */
bool fl_undo_enter(fl_undo *u, int64_t update);

/* Whether a block of the update was written before. */
bool fl_undo_written(const fl_undo *u, int64_t block);

/* Make sure that a block fits into the log: so many places, and so many bytes
 * of all of them. Err: ENOMEM: the state has no room, and nothing has changed.
 */
fl_err fl_undo_reserve(fl_undo *u, int64_t places, size_t bytes) FL_MUST_CHECK;

/* Add a place of the next block to the log. Err: ENOMEM, and the cursor is as
 * it was. */
fl_err fl_undo_add(fl_undo *u, uint32_t space, uint64_t offset, const void *at,
                   size_t bytes) FL_MUST_CHECK;

/* Add rows of dense memory: `row` bytes each, numbered from `at` on, which lies
 * at `offset` of space 0. */
fl_err fl_undo_add_rows(fl_undo *u, uint64_t offset, const void *at, size_t row,
                        int64_t n, const int64_t *index) FL_MUST_CHECK;

/* From now on the block may be written. */
void fl_undo_arm(fl_undo *u, int64_t block);

/* The block is written. */
void fl_undo_next(fl_undo *u, int64_t block);

/* The update is finished. */
void fl_undo_leave(fl_undo *u, int64_t update);

/* The task is finished; or the rest of it is given up. */
void fl_undo_finish(fl_undo *u);

/* How many updates of a task that was interrupted are finished. */
int64_t fl_undo_reached(const fl_undo *u);

/* --- learning rates --- */

/* Whether the rates have run for the task at hand. */
bool fl_undo_rated(const fl_undo *u);

/* Make sure that all that they write fits into their log, as fl_undo_reserve.
 */
fl_err fl_undo_rates_reserve(fl_undo *u, int64_t places,
                             size_t bytes) FL_MUST_CHECK;

/* Before they run: forget the old log, add all that they write, arm. */
void fl_undo_rates_begin(fl_undo *u);
fl_err fl_undo_rates_add(fl_undo *u, uint64_t offset, const void *at,
                         size_t bytes) FL_MUST_CHECK;
void fl_undo_rates_arm(fl_undo *u);

/* After fl_undo_recover: whether the rates ran before. What they wrote over is
 * copied back, so that they must run once more. */
bool fl_undo_rates_ran(const fl_undo *u);

#endif
