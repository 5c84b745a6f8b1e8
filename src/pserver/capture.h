/* SPDX-License-Identifier: Apache-2.0 */
/* capture.h - the values of a store at one moment, while owners go on writing.
 *
 * A thread writes them to disk, block by block and row by row. An owner that is
 * about to change what is not written yet copies it first. The copies of all
 * owners have a limit; beyond it an owner waits for the thread.
 *
 * Rows of a table are read by the owner of the table, between two of its tasks,
 * in the order of their hashes. A row that changes before it was read is copied
 * with its old content; one that is added is noted, and left out. */
#ifndef FL_PSERVER_CAPTURE_H
#define FL_PSERVER_CAPTURE_H

#include "state/snapshot.h"
#include "table/table.h"
#include "tensor/value.h"

typedef struct fl_capture fl_capture;

/* Own: new. `limit`: bytes of copies. */
fl_capture *fl_capture_new(int owners, size_t limit);
void fl_capture_free(fl_capture *c); /* NULL is fine */

/* Before the owners begin: what is captured. Names are copied. `first`: index
 * of the first element in the variable `var`. */
void fl_capture_add(fl_capture *c, int owner, fl_value *v, const char *name,
                    const char *var, int64_t first);
void fl_capture_add_table(fl_capture *c, int owner, const fl_table *t,
                          const char *name);

/* --- on an owner's thread --- */

/* This is the moment. True: all owners have come, and the thread may begin. */
bool fl_capture_enter(fl_capture *c, int owner);

/* Before the value is written. Blocks: beyond the limit. */
void fl_capture_claim(fl_capture *c, const fl_value *v);

/* Before the rows are written or added. Blocks: beyond the limit. */
void fl_capture_rows(fl_capture *c, int owner, const fl_table *t, int64_t n,
                     const int64_t *id);

/* Read rows that the thread waits for, if there are any of this owner. */
void fl_capture_serve(fl_capture *c, int owner);

/* --- on the thread that writes --- */

/* Append all values to the open file of the stage, and list them in the index.
 * poke(user, owner) makes an owner call fl_capture_serve. Err: those of the
 * stage, ENOMEM; EINTR after fl_capture_stop. */
fl_err fl_capture_write(fl_capture *c, fl_stage *to, fl_snapshot_index *index,
                        void (*poke)(void *user, int owner),
                        void *user) FL_MUST_CHECK;

/* Nobody waits for the capture any more. True: it was not stopped before.
 * Thread: any. */
bool fl_capture_stop(fl_capture *c);

/* How many owners wait for the thread that writes. Thread: any. */
int fl_capture_waiting(fl_capture *c);

/* Bytes of copies at most so far. Thread: any. */
size_t fl_capture_peak(fl_capture *c);

#endif
