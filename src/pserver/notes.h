/* SPDX-License-Identifier: Apache-2.0 */
/* notes.h - lines that a server process gathers for its log while it holds the
 * lock of its machines, and writes when it has released the lock.
 *
 *     lock
 *     fl_notes_add ..              also what the machines have noted, trainers
 *                                  that join and leave, and how versions grow
 *     lines = fl_notes_take
 *     unlock
 *     fl_notes_write(lines)
 *
 * Thread: one at a time, except fl_notes_write. */
#ifndef FL_PSERVER_NOTES_H
#define FL_PSERVER_NOTES_H

#include "base/clock.h"
#include "protocol/message.h"

typedef struct fl_notes fl_notes;

fl_notes *fl_notes_new(void); /* own: new */
void fl_notes_free(fl_notes *n);

/* A job begins: of its trainers and versions nothing was said yet. */
void fl_notes_begin(fl_notes *n, int trainers);

void fl_notes_add(fl_notes *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Add the lines of an outbox. */
void fl_notes_add_outbox(fl_notes *n, const fl_outbox *box);

/* A newer view has come: say who has joined and left since the last one, with
 * the reason if the view has it. */
void fl_notes_view(fl_notes *n, const fl_msg *view);

/* The server has this version: say so of the first one, and then once a
 * minute. */
void fl_notes_version(fl_notes *n, int64_t version, const fl_clock *clock);

/* Own: new, for fl_notes_write; NULL: there are none. */
char **fl_notes_take(fl_notes *n);

/* Write lines to the log. Those about a stall are warnings. Own: takes lines.
 */
void fl_notes_write(char **lines);

#endif
