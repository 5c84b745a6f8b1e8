/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.h - the snapshots of a job, as one server sees them: where they
 * are, what the job begins with, and what it goes back to.
 *
 *     begin    the job begins with the state of an earlier process, with a
 *              snapshot (fl_snapshots_choose), or with start values
 *     serve    the coordinator says when one is taken; the store writes it
 *              (writer.h); when all servers have, server 0 commits it
 *     go back  a server has lost its state: the driver makes the store and the
 *              machines anew, with the snapshot that the coordinator names */
#ifndef FL_PSERVER_SNAPSHOTS_H
#define FL_PSERVER_SNAPSHOTS_H

#include "protocol/coord.h"
#include "protocol/server.h"
#include "pserver/restore.h"

typedef struct fl_snapshots {
    const fl_disk *disk;
    const char *dir;      /* NULL: none are taken */
    int64_t every;        /* ns between two of them */
    fl_restore *restore;  /* what the job begins with; NULL: something else */
    int64_t back;         /* number of the one that the job goes back to; 0: it
                             does not */
    int64_t generation;   /* that begins with `back`, or with `restore` */
    uint64_t coordinator; /* state id of the one that says so; 0: this process
                             or nobody */
    bool anew;            /* all trainers are started again */
} fl_snapshots;

/* Read FLUID_SNAPSHOT_DIR and FLUID_SNAPSHOT_EVERY; `disk` outlives it. `back`
 * and what belongs to it stay. Err: EINVAL. */
fl_err fl_snapshots_read(fl_snapshots *s, const fl_disk *disk,
                         const fl_placement *place) FL_MUST_CHECK;
void fl_snapshots_fini(fl_snapshots *s); /* `back` stays */

/* There is no state of an earlier process: open `restore` if the job begins
 * with a snapshot. Err: EINVAL, those of fl_restore_open. */
fl_err fl_snapshots_choose(fl_snapshots *s, const fl_placement *place,
                           const fl_job *job) FL_MUST_CHECK;

/* Server 0 begins with `restore`, and with this state id: enter it in the
 * directory, so that a process that has lost this state finds the snapshot. */
void fl_snapshots_enter(const fl_snapshots *s, uint64_t state);

/* Let the machines begin where `restore` was taken, and close it. `coord` is
 * NULL if this is not server 0. Err: EPROTO. */
fl_err fl_snapshots_rewind(fl_snapshots *s, fl_server *server, fl_coord *coord,
                           int64_t now) FL_MUST_CHECK;

/* Tell the coordinator what is there, so that it takes more. Err: EIO. */
fl_err fl_snapshots_begin(const fl_snapshots *s, fl_coord *coord,
                          int64_t now) FL_MUST_CHECK;

/* All servers have written a snapshot: make it whole. False: it is not, which
 * the log says. `state`: state id of server 0. */
bool fl_snapshots_commit(const fl_snapshots *s, const fl_coord_moment *of,
                         const fl_job *job, uint64_t state);

/* Whether the job goes back: sets `back` and `generation`. */
bool fl_snapshots_goes_back(fl_snapshots *s, const fl_server *server,
                            const fl_coord *coord);

/* The job went back from version `before` to `after`: say what is lost. */
void fl_snapshots_log_lost(const fl_snapshots *s, bool async, int64_t before,
                           int64_t after);

#endif
