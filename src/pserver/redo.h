/* SPDX-License-Identifier: Apache-2.0 */
/* redo.h - what a server at level `host` writes to disk, so that it can be made
 * again after its host was lost.
 *
 *     FLUID_JOURNAL_DIR/NAME/       NAME: as that of the state directory
 *       base/                       a copy of the state directory, visible as a
 *                                   whole (base/stage.h); its file `after` has
 *                                   the number of the last record that it
 *                                   contains
 *       journal-000001 ..           what happened since (state/journal.h)
 *
 * While the host lives, the state directory counts, and each process of the
 * server begins with a new base. If the state directory is gone, it is filled
 * from the base, and the records are applied to it in their order: the store
 * gets the same pushes in the same order, so it has the same bits.
 *
 * Nothing leaves the server before the records that it rests on are on disk:
 * see fl_redo_hold. */
#ifndef FL_PSERVER_REDO_H
#define FL_PSERVER_REDO_H

#include "base/disk.h"
#include "protocol/server.h"
#include "pserver/recovery.h"

typedef struct fl_redo fl_redo;

typedef struct fl_redo_opts {
    const fl_disk *disk; /* of base and journal; NULL: the real one */
    /* Records up to `number` are on disk. Thread: the journal's. */
    void (*durable)(void *self, uint64_t number);
    void *self;
} fl_redo_opts;

fl_redo *fl_redo_new(const fl_redo_opts *opts); /* own: new */
void fl_redo_free(fl_redo *r);                  /* NULL is fine */

/* The path of the base that the journal of the state `name` has. Own: *out is
 * new. Err: ENOENT: there is none. */
fl_err fl_redo_find_base(const char *name, char **out) FL_MUST_CHECK;

/* Call fn for the directory of each journal; `base` is that of its base, which
 * may be missing. */
void fl_redo_each(void (*fn)(void *user, const char *path, const char *base),
                  void *user);

/* For fl_recovery_opts.fill: copy the base of the state `name` into an empty
 * state directory. *filled: there was a base. Err: EIO, ENOMEM; EPROTO: the
 * base is damaged. */
fl_err fl_redo_fill(void *redo, const char *name, const char *path,
                    bool *filled) FL_MUST_CHECK;

/* Whether fl_redo_fill has filled the state: fl_redo_replay is due. */
bool fl_redo_filled(const fl_redo *r);

/* Apply the records to a state that was filled. `store` is a store of that
 * state, whose `applied` callback calls fl_redo_applied. Blocks: until all is
 * applied. Err: EIO, ENOMEM, EPROTO. */
fl_err fl_redo_replay(fl_redo *r, fl_recovery *recovery,
                      const fl_store *store) FL_MUST_CHECK;
void fl_redo_applied(fl_redo *r, const char *why); /* thread: any */

/* Copy the state to a new base and begin the journal. Until then nothing is
 * recorded. Nobody may change the state meanwhile. Err: EIO. */
fl_err fl_redo_begin(fl_redo *r, fl_recovery *recovery) FL_MUST_CHECK;

/* A store that records what it is told to do, and then does it as `inner`. */
fl_store fl_redo_wrap(fl_redo *r, const fl_store *inner);

/* The store has called `applied` once more. Thread: the machine's. */
void fl_redo_finished(fl_redo *r);

/* Whether a push of `bytes` bytes can be recorded. Err: ENOMEM: the disk is
 * full or too slow, or a new base is due, and the push must wait; EIO: the
 * journal has failed. */
fl_err fl_redo_room(fl_redo *r, size_t bytes) FL_MUST_CHECK;

/* Record the images of both machines. */
void fl_redo_images(fl_redo *r, const void *server, size_t n_server,
                    const void *coord, size_t n_coord);

/* Whether the message must wait until the records that it rests on are on
 * disk. It is then copied, and fl_redo_release gives it back. The end of a
 * failed job waits for nothing: the disk may be the reason. Thread: the
 * machine's. */
bool fl_redo_hold(fl_redo *r, const fl_envelope *e);

/* Whether messages wait. Thread: the machine's. */
bool fl_redo_holds(const fl_redo *r);

/* Records up to `number` are on disk: send what has waited for them, in order.
 * Thread: the machine's. */
void fl_redo_release(fl_redo *r, uint64_t number,
                     void (*send)(void *self, const fl_envelope *e),
                     void *self);

/* Try again to write what had no room; once a second is enough. Err: EIO: the
 * journal has failed, and nothing is durable any more. */
fl_err fl_redo_tick(fl_redo *r) FL_MUST_CHECK;

/* If the journal has grown so much that a new base is due, and nothing is in
 * the course of being applied, copy the state. Until then fl_redo_room lets
 * pushes wait, so that this moment comes. `settle` waits until nobody changes
 * the state any more. *copied: fl_redo_commit is due. Err: EIO: the old base
 * and its records stay. Thread: the machine's. */
fl_err fl_redo_renew(fl_redo *r, void (*settle)(void *store), void *store,
                     bool *copied) FL_MUST_CHECK;

/* Whether a new base is due, and has not been copied yet. Thread: the
 * machine's. */
bool fl_redo_rebasing(fl_redo *r);

/* Make the copy durable and remove older records; the server goes on meanwhile.
 * Err: EIO: the old base and its records stay. */
fl_err fl_redo_commit(fl_redo *r) FL_MUST_CHECK;

/* The job has ended: remove all files. */
void fl_redo_remove(fl_redo *r);

/* Append where the journal is and how it is, for `paddle why`. */
void fl_redo_about(fl_redo *r, fl_str *lines);

#endif
