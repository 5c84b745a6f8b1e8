/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - the thread that writes the snapshots of a store, one at a time.
 *
 *     begin    every owner gets a task that enters the capture, so that all of
 *              them are at the same place between their tasks
 *     write    when all have entered, the thread writes the part of this server
 *     leave    every owner gets a task that leaves the capture; the last one
 *              frees it */
#ifndef FL_PSERVER_WRITER_H
#define FL_PSERVER_WRITER_H

#include "protocol/server.h"
#include "pserver/capture.h"

typedef struct fl_writer fl_writer;

typedef struct fl_writer_opts {
    const fl_disk *disk;
    const char *base;    /* directory of snapshots */
    int server, servers; /* whose part it is */
    int owners;
    /* Run fn(arg) on the thread of an owner, after the tasks that it has. */
    void (*submit)(void *store, int owner, void (*fn)(void *arg), void *arg);
    /* The same, but the owner also runs it while it waits for room in the
     * state, in the middle of a task. fn only reads. */
    void (*serve)(void *store, int owner, void (*fn)(void *arg), void *arg);
    /* Wait until the owners have run all their tasks. */
    void (*settle)(void *store);
    void *store;
    /* As in fl_pstore_opts; NULL: nobody is told. */
    void (*written)(void *self, int64_t number, const char *why);
    void *self;
} fl_writer_opts;

/* Own: *out is new; what opts points to outlives it. Err: those of fl_pool_new.
 */
fl_err fl_writer_new(const fl_writer_opts *opts, fl_writer **out) FL_MUST_CHECK;

/* Give up a snapshot that is being written, and end the thread. Nobody gives
 * the owners tasks any more. NULL is fine. Blocks: until the owners are done.
 */
void fl_writer_free(fl_writer *w);

/* Whether a snapshot is being written. Thread: any. */
bool fl_writer_busy(fl_writer *w);

/* Take a snapshot of what was added to the capture, if none is being written.
 * Own: `of`. Thread: the machine's. */
void fl_writer_begin(fl_writer *w, fl_capture *of, const fl_moment *at);

/* The owner has no room in the state and waits in the middle of a task. If it
 * has not entered the snapshot that is being taken, other owners may wait for
 * it, and may be those that would make room: the snapshot is given up, and the
 * log says so. Thread: the owner's. */
void fl_writer_lacks_room(fl_writer *w, int owner);

/* Append a line if owners wait until more of a snapshot is written. Thread:
 * any. */
void fl_writer_waits(fl_writer *w, fl_str *rows);

/* The capture that the owner must tell before it writes; NULL: there is none,
 * or `w` is NULL. Thread: the owner's. */
fl_capture *fl_writer_capture(const fl_writer *w, int owner);

#endif
