/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the ranks of a collective job, as far as one of them has heard.
 *
 * A state machine without sockets and without a clock (net/mesh.h has both):
 *
 *     in    greetings, notes, ends of connections, waits, time
 *     out   notes for all other ranks, sentences about late ranks, a failure
 *
 *     JOINING --all are connected--> CALLS 1, 2, 3 .. --leave--> LEFT
 *        \____________________________ \___ any failure ___> FAILED
 *
 * A failure is final: the first one is kept, and the notes tell it to all
 * others. Whoever waits long tells all others for whom: so a rank that waits
 * for rank 1, which waits for rank 2, can name rank 2. */
#ifndef FL_NET_RANKS_H
#define FL_NET_RANKS_H

#include "base/err.h"
#include "net/greeting.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    FL_CALL_WHAT = 56, /* bytes of the text of a call */
};

typedef struct fl_ranks fl_ranks; /* Thread: one at a time */

typedef struct fl_ranks_opts {
    const char *const *endpoints; /* of each rank; they outlive the machine */
    int world, rank;
    int64_t late_after; /* ns of a wait until a sentence is made of it */
} fl_ranks_opts;

fl_ranks *fl_ranks_new(const fl_ranks_opts *opts);
void fl_ranks_free(fl_ranks *r); /* NULL is fine */

/* --- what comes out --- */

/* The failure, with its sentence. Err: that of the failure. */
fl_err fl_ranks_check(const fl_ranks *r) FL_MUST_CHECK;

/* Notes for the control connection of every other rank; NULL: none. They are
 * given once, and live until the next call of the machine. */
const void *fl_ranks_take_notes(fl_ranks *r, size_t *size);

/* The note of the failure again, for a connection that is still in its
 * greeting: the other end may count it as made. NULL: there is no failure. */
const void *fl_ranks_failure_note(const fl_ranks *r, size_t *size);

/* A sentence about a rank that is late; NULL: none. As above. */
const char *fl_ranks_take_late(fl_ranks *r);

/* --- joining --- */

/* The next rank to connect to, and the next to accept. Rank r connects to
 * 0 .. r-1 and then accepts r+1 .. world-1. No two ranks wait for each other,
 * since rank 0 accepts at once, then rank 1 does, and so on. Both functions set
 * the rank that late sentences name. False: there is none left. */
bool fl_ranks_next_server(fl_ranks *r, int *rank, fl_mesh_channel *c);
bool fl_ranks_next_client(fl_ranks *r);

/* Check that a client, which has the key, may be the rank that its HELLO names.
 * If not, the machine fails, and both sides get the sentence. Err: EINVAL. */
fl_err fl_ranks_admit(fl_ranks *r, const fl_hello *h,
                      const char *address) FL_MUST_CHECK;

/* A server has refused this rank, which ends the job. Err: EINVAL. */
fl_err fl_ranks_refuse(fl_ranks *r, int rank,
                       const fl_hello_verdict *v) FL_MUST_CHECK;

void fl_ranks_connected(fl_ranks *r, int rank, fl_mesh_channel c);

/* Note why the last attempt to connect failed, for the sentence of a timeout;
 * "": it succeeded. */
void fl_ranks_excuse(fl_ranks *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* --- notes and ends of connections --- */

/* Bytes of a control connection. They may end within a note. Err: EENDED (a
 * rank has failed), EPROTO. */
fl_err fl_ranks_hear(fl_ranks *r, int rank, const void *bytes,
                     size_t n) FL_MUST_CHECK;

/* The control connection has ended, with that errno or 0. Err: EENDED, unless
 * the rank had said farewell. */
fl_err fl_ranks_end_control(fl_ranks *r, int rank, int error) FL_MUST_CHECK;

/* The data connection has ended. The reason comes on the control connection, if
 * it has not come yet: the machine waits for it, and fails. Err: EIO (the
 * reason is known). */
fl_err fl_ranks_end_data(fl_ranks *r, int rank, int64_t now) FL_MUST_CHECK;

/* --- waits --- */

/* Begin a wait for a rank, or begin it anew after some bytes have arrived.
 * what: "to connect"; NULL: the current call. The wait fails after `limit` ns.
 */
void fl_ranks_wait(fl_ranks *r, int rank, const char *what, int64_t limit,
                   int64_t now);
void fl_ranks_end_wait(fl_ranks *r);

int64_t fl_ranks_due(const fl_ranks *r); /* when fl_ranks_tick must be called */
/* Err: ETIMEOUT, EIO (no reason of a lost connection has come). */
fl_err fl_ranks_tick(fl_ranks *r, int64_t now) FL_MUST_CHECK;

/* --- failures and the end --- */

/* The machine fails with `code` and the sentence of the thread. Returns code.
 */
fl_err fl_ranks_fail(fl_ranks *r, fl_err code);
fl_err fl_ranks_interrupt(fl_ranks *r); /* opts.poll has ended the wait */
void fl_ranks_give_up(fl_ranks *r,
                      const char *why); /* this rank cannot go on */
void fl_ranks_leave(fl_ranks *r);       /* with a farewell */

/* --- calls --- */

/* What sentences about calls say besides the call: the variable that it is
 * for, how many others share it, and the steps that were done before. The name
 * is the caller's and must live until the next one is set. */
typedef struct fl_mesh_subject {
    const char *var; /* NULL: none */
    int others;
    int64_t steps;
} fl_mesh_subject;

void fl_ranks_about(fl_ranks *r, const fl_mesh_subject *about);

/* What goes before the data of a call; it must be the same on all ranks. */
typedef struct fl_call_head {
    uint64_t number; /* of the call: 1, 2, 3 */
    char what[FL_CALL_WHAT];
} fl_call_head;

/* The next call begins. Err: the failure of an earlier one. */
fl_err fl_ranks_begin_call(fl_ranks *r, const char *fmt,
                           va_list args) FL_MUST_CHECK;
const fl_call_head *fl_ranks_call(const fl_ranks *r);

/* A rank has sent this head. Err: EPROTO (it is in another call). */
fl_err fl_ranks_compare_call(fl_ranks *r, int rank,
                             const fl_call_head *h) FL_MUST_CHECK;

#endif
