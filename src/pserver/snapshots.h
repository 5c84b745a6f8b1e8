/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.h - the snapshots of a job, as one server sees them: where they
 * are, what the job begins with, and what it goes back to.
 *
 *     begin    the job begins with the state of an earlier process, with a
 *              snapshot (fl_snapshots_choose), or with start values. Server 0
 *              decides it; the others begin with their state or with start
 *              values, and are told to go back
 *     serve    the coordinator says when one is taken; the store writes it
 *              (writer.h); when all servers have, server 0 commits it
 *     go back  a server has lost its state: the driver opens the snapshot that
 *              the coordinator names (fl_snapshots_goes_back), and makes the
 *              store and the machines anew with it. If it cannot be restored,
 *              the coordinator chooses an older one */
#ifndef FL_PSERVER_SNAPSHOTS_H
#define FL_PSERVER_SNAPSHOTS_H

#include "protocol/coord.h"
#include "protocol/server.h"
#include "pserver/restore.h"
#include "state/snapshot_lock.h"

typedef struct fl_snapshots {
    const fl_disk *disk;
    const char *dir; /* NULL: none are taken */
    bool locked;     /* server 0 holds the lock of `dir` */
    fl_snapshot_lock lock;
    int64_t every;        /* ns between two of them */
    fl_restore *restore;  /* what the job begins with or goes back to; NULL:
                             something else */
    int64_t back;         /* number of the one that the job goes back to; 0: it
                             does not */
    int64_t generation;   /* that begins with `back`, or with `restore` */
    uint64_t coordinator; /* state id of the one that says so; 0: this process
                             or nobody */
    int64_t damaged;      /* a newer one than `back`, which some server cannot
                             restore; 0: none */
    bool anew;            /* all trainers are started again */
} fl_snapshots;

/* Read FLUID_SNAPSHOT_DIR and FLUID_SNAPSHOT_EVERY, and lock the directory,
 * until fl_snapshots_unlock; `disk` outlives it. `back`, `restore` and what
 * belongs to them stay. Err: EINVAL; ETIMEOUT: another job has the directory.
 */
fl_err fl_snapshots_read(fl_snapshots *s, const fl_disk *disk,
                         const fl_placement *place) FL_MUST_CHECK;
void fl_snapshots_fini(fl_snapshots *s);
void fl_snapshots_unlock(fl_snapshots *s);

/* There is no state of an earlier process: open `restore` if the job begins
 * with a snapshot, unless it is open. Err: EINVAL, those of fl_restore_open. */
fl_err fl_snapshots_choose(fl_snapshots *s, const fl_placement *place,
                           const fl_job *job) FL_MUST_CHECK;

/* Server 0 begins with `restore`, and with this state id: enter it in the
 * directory, so that a process that has lost this state finds the snapshot.
 * Newer ones up to `damaged` are set aside. */
void fl_snapshots_enter(const fl_snapshots *s, uint64_t state);

/* Let the machines begin where `restore` was taken, and close it. `coord` is
 * NULL if this is not server 0. Err: EPROTO. */
fl_err fl_snapshots_rewind(fl_snapshots *s, fl_server *server,
                           fl_coord *coord) FL_MUST_CHECK;

/* The state of server 0 is complete. Tell the coordinator what is there, so
 * that it takes more. Err: EIO. */
fl_err fl_snapshots_begin(const fl_snapshots *s, fl_coord *coord,
                          int64_t now) FL_MUST_CHECK;

/* All servers have written a snapshot: make it whole. The result is the oldest
 * whole one that is left; 0: it is not whole, which the log says. `state`:
 * state id of server 0. */
int64_t fl_snapshots_commit(const fl_snapshots *s, const fl_coord_moment *of,
                            const fl_job *job, uint64_t state);

/* Whether the job goes back: sets `back` and what belongs to it. */
bool fl_snapshots_goes_back(fl_snapshots *s, const fl_server *server,
                            const fl_coord *coord);

/* Open `restore`, before the server gives up what it holds. Err: as of
 * fl_restore_open. */
fl_err fl_snapshots_open_back(fl_snapshots *s, const fl_placement *place,
                              const fl_job *job) FL_MUST_CHECK;

/* That has failed, and fl_errmsg says why: the server does not go back, and the
 * coordinator is told. */
void fl_snapshots_cannot_go_back(fl_snapshots *s, fl_server *server,
                                 fl_coord *coord, int64_t now);

/* Server 0 is about to give up what it holds, to go back. Note that in the
 * directory, so that a process that is started after this one was killed does
 * so as well. */
void fl_snapshots_leave(const fl_snapshots *s, const fl_job *job);

/* The job went back from version `before` to `after`: say what is lost. */
void fl_snapshots_log_lost(const fl_snapshots *s, bool async, int64_t before,
                           int64_t after);

#endif
