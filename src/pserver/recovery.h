/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.h - what a server process keeps in its state directory besides the
 * parameters: the images of its machines, and staged pushes.
 *
 * A staged push is kept as the message that came. It is copied into the stage
 * before the machine sees it, outside of any lock, and read from there. */
#ifndef FL_PSERVER_RECOVERY_H
#define FL_PSERVER_RECOVERY_H

#include "protocol/coord.h"
#include "protocol/server.h"
#include "state/statedir.h"
#include "wire/codec.h"

typedef struct fl_recovery fl_recovery;

typedef struct fl_recovery_opts {
    const fl_job *job;
    const char *name;        /* of the state; NULL: that of job and server */
    const fl_packet *setup;  /* the job, which the state keeps; NULL: the server
                                knows it without */
    bool existing;           /* a state that is not there is an error */
    int server;              /* number of this server */
    int owners;              /* threads that own parameters */
    uint64_t id;             /* state id of a new state */
    size_t bytes;            /* of the parameters */
    int (*poll)(void *user); /* not 0 ends a wait for the lock */
    bool (*serves)(void *user); /* whether another process answers at the
                                   address of this server */
    void *user;
    /* As in fl_statedir_opts. */
    fl_err (*fill)(void *self, const char *name, const char *path,
                   bool *filled);
    void *fill_self;
} fl_recovery_opts;

/* Find the state of this server, or begin a new one. Own: *out is new; the job
 * outlives it. Err: those of fl_statedir_open. */
fl_err fl_recovery_open(const fl_recovery_opts *opts,
                        fl_recovery **out) FL_MUST_CHECK;
void fl_recovery_close(fl_recovery *r); /* NULL is fine; the state stays */

/* The job that a state directory, or a copy of one, keeps. Own: *out is new.
 * Err: ENOENT: it keeps none; EIO, EINVAL: its file is damaged. */
fl_err fl_recovery_read_setup(const char *path, fl_packet **out) FL_MUST_CHECK;

fl_statedir *fl_recovery_dir(const fl_recovery *r);
fl_state fl_recovery_state(const fl_recovery *r);

/* After the machines were made: let them go on where they were, or, for a new
 * state, call it complete. `coord` is NULL if this is not server 0. Err:
 * EPROTO, EINVAL: the state is damaged. */
fl_err fl_recovery_restore(fl_recovery *r, fl_server *server, fl_coord *coord,
                           int64_t now) FL_MUST_CHECK;

/* Make sure that there is room for what a message adds to the images. Err:
 * ENOMEM, which names the file and the bytes. */
fl_err fl_recovery_reserve(fl_recovery *r, const fl_msg *m) FL_MUST_CHECK;

/* Write down the images of both machines. Err: ENOMEM: there is no room. */
fl_err fl_recovery_save(fl_recovery *r, const void *server, size_t n_server,
                        const void *coord, size_t n_coord) FL_MUST_CHECK;

/* Copy a push into the stage: *m, which was decoded from `packet`, becomes the
 * message that lies there, and its blob has a new reference. Nothing happens in
 * asynchronous mode. Err: ENOMEM, which names the directory; EPROTO. */
fl_err fl_recovery_stage(fl_recovery *r, const fl_packet *packet,
                         fl_arena *arena, fl_msg *m) FL_MUST_CHECK;

/* Call fn for each push that the state had staged when it was found. Own: fn
 * gets a reference. Err: EINVAL, EPROTO: the stage is damaged. */
fl_err fl_recovery_each_staged(fl_recovery *r,
                               void (*fn)(void *self, const fl_push_id *id,
                                          fl_blob kept),
                               void *self) FL_MUST_CHECK;

/* What fl_store's stage, closed and forget do in synchronous mode. */
fl_blob fl_recovery_keep(fl_recovery *r, const fl_push_id *id, fl_blob b);
void fl_recovery_closed(fl_recovery *r, int64_t version);
void fl_recovery_forget(fl_recovery *r, fl_id session);

/* Whether the job goes on if the process is started again: an earlier process
 * left the state, or an image was saved. */
bool fl_recovery_begun(const fl_recovery *r);

/* The job has ended: remove the state. */
void fl_recovery_remove(fl_recovery *r);

/* Warn once if the files of the state were removed by someone else. */
void fl_recovery_watch(fl_recovery *r);

/* Append where the state is and how it is, for `paddle why`. */
void fl_recovery_about(const fl_recovery *r, fl_str *lines);

#endif
