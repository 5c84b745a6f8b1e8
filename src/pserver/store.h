/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - a server's parameters, and the threads that own them.
 *
 *     push   names, shapes, row numbers and values are checked on arrival
 *     apply  the owner of each gradient computes the mean of what the
 *            participants sent, in order of rank, then runs the gradient's
 *            block of the program
 *     pull   the owner shares the memory of a tensor, or copies rows
 *
 * Every update has one owner thread, and an owner does one task after the
 * other, so parameters need no locks. A tensor that a pull still shares is
 * copied before it is written. Each owner runs the learning-rate blocks for
 * itself, on state of its own, so that no owner waits for another. */
#ifndef FL_PSERVER_STORE_H
#define FL_PSERVER_STORE_H

#include "exec/exe.h"
#include "protocol/server.h"
#include "pserver/recovery.h"
#include "pserver/restore.h"

typedef struct fl_pstore fl_pstore;

enum {
    FL_OWNERS_MOST = 64 /* more threads would only wait for memory */
};

typedef struct fl_pstore_opts {
    const fl_exec_env *env;    /* for plans; its watch may end loading */
    const fl_program *program; /* of the server */
    const fl_op *op;           /* the program's listen_and_serv */
    fl_scope *scope;           /* where the startup program has run */
    int owners;                /* number of owner threads; 0 = 1 */
    bool allow_nan;            /* accept gradients that are not finite */
    int64_t table_bytes;   /* memory limit of all tables; 0: see fl_budget */
    fl_recovery *recovery; /* keeps the parameters and staged pushes; NULL: they
                              end with the process */
    size_t max_answer; /* bytes of values in an answer; 0: as many as a message
                          can carry */
    const fl_placement *place; /* whose pieces the variables are; NULL: whole
                                  variables */
    const char *snapshots; /* directory of snapshots; NULL: none are taken */
    void *self;            /* first argument of the callbacks */
    /* A round or push was applied; `why` is the error, or NULL. Thread: an
     * owner's. */
    void (*applied)(void *self, const char *why);
    /* The state has no room for what is being applied: see fl_room_opts. NULL:
     * the round or push fails. */
    bool (*full)(void *self, const char *why);
    /* Send the answer to a pull; m is borrowed. Thread: an owner's. */
    void (*answer)(void *self, fl_peer to, const fl_msg *m);
    /* A snapshot was written; `why` is the error, or NULL. Thread: the one that
     * has written it. */
    void (*written)(void *self, int64_t number, const char *why);
} fl_pstore_opts;

/* Bytes of all values that a store with these would hold, without tables. */
size_t fl_pstore_bytes(const fl_program *program, fl_scope *scope);

/* Whether the startup program has left values absent: the state has them. */
bool fl_pstore_lacks(const fl_program *program, fl_scope *scope);

/* Own: *out is new; all that opts points to outlives it. Err: EINVAL, ENOENT.
 */
fl_err fl_pstore_new(const fl_pstore_opts *opts, fl_pstore **out) FL_MUST_CHECK;

/* Right after fl_pstore_new: take the values of a snapshot in place of those of
 * the startup program. Err: EINVAL: it is of another program; EPROTO: it is
 * damaged; ENOENT: a part is not there; ENOMEM, EIO. */
fl_err fl_pstore_load(fl_pstore *s, const fl_restore *from) FL_MUST_CHECK;

/* Asynchronous, after a restart: see fl_kept_resume. */
void fl_pstore_resume(fl_pstore *s, fl_server *server);

/* Finish all rounds and pulls, then end the threads. NULL is fine.
 * Blocks: until they are finished. */
void fl_pstore_free(fl_pstore *s);

/* Wait until the owners have nothing to do. Nothing may be in the course of
 * being applied, because the report of it may wait for the caller. */
void fl_pstore_settle(fl_pstore *s);

/* What the state machine of the server calls. Thread: the machine's. */
const fl_store *fl_pstore_ops(const fl_pstore *s);

/* Whether what is being applied has room in the state. Err: ENOMEM: it waits
 * for room; pushes that come now must wait, too. Thread: any. */
fl_err fl_pstore_room(fl_pstore *s) FL_MUST_CHECK;

/* Add lines to `rows`: rounds that are being applied, pushes that were refused.
 * Thread: the machine's. */
void fl_pstore_waits(fl_pstore *s, fl_str *rows);

#endif
