/* SPDX-License-Identifier: Apache-2.0 */
/* machines.h - the state machines of a server process, with their lock: the
 * server and, in the process of server 0, the coordinator.
 *
 *     fl_machines_lock
 *     events          fl_server_recv, fl_coord_recv, fl_machines_tick, ..
 *     fl_machines_unlock
 *         exchange    the two machines get each other's messages
 *         save        the images of both are saved, if they have changed
 *         send        all other messages leave the process
 *         log         after the lock is released
 *
 * So nobody hears of anything that a restart could forget, and no event is
 * without its answers.
 *
 * A process has its machines for one job after the other:
 *
 *     fl_machines_begin   makes them; the caller restores them
 *     fl_machines_open    events may reach them
 *     fl_machines_close   no event reaches them any more
 *     fl_machines_end     frees them
 *
 * Thread: the one that holds the lock, except where a function says something
 * else. Nobody calls the store or the network with the lock held if they can
 * call back and wait for it. */
#ifndef FL_PSERVER_MACHINES_H
#define FL_PSERVER_MACHINES_H

#include "base/clock.h"
#include "protocol/coord.h"
#include "protocol/server.h"

typedef struct fl_machines fl_machines;

typedef struct fl_machines_opts {
    const fl_clock *clock;
    /* Send a message to another process: the answer to a call, or a message to
     * the coordinator or another server. The lock is held. */
    void (*send)(void *self, const fl_envelope *e);
    void *self;
} fl_machines_opts;

/* What the machines are made for; all that it points to outlives them. */
typedef struct fl_machines_job {
    const fl_job *job;
    int server; /* number of this server; 0: with a coordinator */
    fl_state state;
    int64_t generation; /* that begins now; an image has its own */
    const fl_store *store;
    /* Save both images as one: after a crash both are there, or both of the
     * time before. `coord` has no bytes if this is not server 0. `self` is that
     * of fl_machines_opts. NULL: nothing is kept. */
    void (*save)(void *self, const void *server, size_t n_server,
                 const void *coord, size_t n_coord);
} fl_machines_job;

/* Own: new. Free writes what is left for the log. */
fl_machines *fl_machines_new(const fl_machines_opts *opts);
void fl_machines_free(fl_machines *m);

/* Thread: any. The head of this file says what happens when the lock is
 * released. */
void fl_machines_lock(fl_machines *m);
void fl_machines_unlock(fl_machines *m);

/* --- from job to job --- */

/* Make the machines. *coord is NULL if this is not server 0. Both are borrowed.
 * Thread: any; nobody else uses them yet, and the lock is not held. */
void fl_machines_begin(fl_machines *m, const fl_machines_job *job,
                       fl_server **server, fl_coord **coord);

/* Save the images, if they have changed and are kept. Thread: between
 * fl_machines_begin and fl_machines_open the caller's. */
void fl_machines_save(fl_machines *m);

/* The lock is not held. */
void fl_machines_open(fl_machines *m);
void fl_machines_close(fl_machines *m);
void fl_machines_end(fl_machines *m); /* also without fl_machines_begin */

/* --- with the lock --- */

/* NULL: the machines are not open. */
fl_server *fl_machines_server(const fl_machines *m);
fl_coord *fl_machines_coord(const fl_machines *m); /* NULL also: not server 0 */

/* Of the job. It does not change while the machines are open, and is read
 * without the lock then. */
int64_t fl_machines_generation(const fl_machines *m);

/* Whether they were closed: the server is ending. */
bool fl_machines_closed(const fl_machines *m);

/* Add a line for the log. */
void fl_machines_note(fl_machines *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* --- events: only while the machines are open --- */

void fl_machines_tick(fl_machines *m);

/* A message of the coordinator has come to another server than server 0. Who
 * joins and leaves, and the end of the job, are noted for the log. */
void fl_machines_recv(fl_machines *m, const fl_msg *from_coordinator);

/* A trainer has opened the call of its session. Thread: also while they are not
 * open. */
void fl_machines_opened(fl_machines *m, uint64_t call);

/* A call broke. Thread: also while they are not open. */
void fl_machines_hangup(fl_machines *m, uint64_t call);

/* A message to that server was refused: see fl_coord_refused. */
void fl_machines_refused(fl_machines *m, int server, bool no_listener);

/* End the job because of an error, which `why` names. Server 0 ends it with
 * this code; another server asks for it. */
void fl_machines_fail(fl_machines *m, int code, const char *why);

/* --- the end of the job: only while the machines are open --- */

/* Whether the process may exit. No trainer is left and no request can come any
 * more: on server 0 every trainer has closed the call of its session, which it
 * does when its COMPLETE or FAILED was acknowledged, and every server was told
 * that it may leave, for which `sent` says that no END is on its way; on other
 * servers the coordinator knows that this one has ended. Or all had enough
 * time. */
bool fl_machines_over(const fl_machines *m, bool sent);

/* Whether the job has succeeded, as far as this server knows. */
bool fl_machines_complete(const fl_machines *m);

/* Err: EENDED: the job has failed, and why. */
fl_err fl_machines_result(const fl_machines *m) FL_MUST_CHECK;

/* Append rows of fl_wait_row. */
void fl_machines_waits(const fl_machines *m, fl_str *rows);

#endif
