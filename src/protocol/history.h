/* SPDX-License-Identifier: Apache-2.0 */
/* history.h - the snapshots of a job, as the coordinator knows them.
 *
 * It numbers the snapshots and says when the next one is due. It knows which
 * servers have written the one that is being taken, which ones are whole, and
 * which of them are of the same history. When a server has lost its state it
 * chooses the snapshot that the job goes back to. The bytes of snapshots are
 * elsewhere. A pure state machine: time is a parameter, and log lines go to an
 * outbox. Thread: one at a time. */
#ifndef FL_PROTOCOL_HISTORY_H
#define FL_PROTOCOL_HISTORY_H

#include "protocol/image.h"

typedef struct fl_history fl_history;

/* A state of server 0 that has taken a whole snapshot, or has begun with it.
 * The job can go back to the snapshot if this was the state of server 0 when
 * others saw it last. */
typedef struct fl_history_origin {
    int64_t snapshot;
    uint64_t state; /* its id */
    bool taken;     /* it has taken the snapshot */
} fl_history_origin;

/* The newest older snapshot of the same history: the state that has taken
 * `number` has taken it too, or has begun with it. `at` has n rows. 0: there is
 * none. */
int64_t fl_history_older(const fl_history_origin *at, int64_t n,
                         int64_t number);

/* The history of a job without snapshots. `out` has the state and the
 * generation of the coordinator, and gets the log lines; it and `job` must
 * outlive the history. Own: new. */
fl_history *fl_history_new(const fl_job *job, fl_outbox *out);
void fl_history_free(fl_history *h);

/* Visit what outlives the process: the numbers, but no times and no origins. */
void fl_history_visit(fl_history *h, fl_image *im);

/* --- taking --- */

/* Let a snapshot be due every `every` ns. Numbers begin behind `last`. `found`
 * has n rows, for the whole snapshots that are there. */
void fl_history_open(fl_history *h, int64_t every, int64_t last,
                     const fl_history_origin *found, int64_t n, int64_t now);

/* Whether the next snapshot is due, and the last one is written or has had
 * enough time. */
bool fl_history_due(const fl_history *h, int64_t now);

/* Begin the next snapshot; fl_history_writing is then its number. One that is
 * still being written is given up, and the log names the servers that have not
 * written it. `version`: of the values. Own: the image of the coordinator in
 * the snapshot, empty, to be filled by the caller; borrowed. */
fl_str *fl_history_begin(fl_history *h, int64_t version, int64_t now);

int64_t fl_history_writing(const fl_history *h); /* 0: none is written */

/* A server has written the snapshot of that number and all before it. */
void fl_history_wrote(fl_history *h, int server, int64_t number);

/* Whether all servers have written the snapshot that is being written. Its
 * version and its image are then set; the image is borrowed until the next
 * fl_history_begin. */
bool fl_history_written(const fl_history *h, int64_t *version,
                        const fl_str **image);

/* The snapshot is committed: the job can go back to it. `oldest`: the oldest
 * whole one that is left; 0: this one is given up. */
void fl_history_committed(fl_history *h, int64_t number, int64_t oldest);

/* --- going back --- */

/* This generation begins with snapshot `base`; fl_history_base tells it. */
void fl_history_rewind(fl_history *h, int64_t base);
int64_t fl_history_base(const fl_history *h); /* 0: it began without one */

/* The newest snapshot that the job can go back to; 0: none. If this state of
 * server 0 has none, those that the state `was` has taken or begun with count
 * from now on. */
int64_t fl_history_newest(fl_history *h, uint64_t was);

/* A server has lost its state: the job goes back to fl_history_newest, which is
 * not 0. `known`: a generation that another party has seen. */
void fl_history_go_back(fl_history *h, int server, int64_t known);

/* A server cannot restore snapshot `number`, which the job goes back to or this
 * generation began with: the job goes back to the next older one. False: there
 * is none, and the job cannot go back at all. */
bool fl_history_go_further(fl_history *h, int server, int64_t number,
                           const char *why);

/* The snapshot that the job goes back to; 0: none. */
int64_t fl_history_rewinds(const fl_history *h);

/* The generation that begins with that snapshot. */
int64_t fl_history_next_generation(const fl_history *h);

/* The newest snapshot that a server could not restore; 0: none. */
int64_t fl_history_damaged(const fl_history *h);

#endif
