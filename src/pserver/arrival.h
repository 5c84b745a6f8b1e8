/* SPDX-License-Identifier: Apache-2.0 */
/* arrival.h - a job that arrives at a server which was started without one.
 *
 * Trainer 0 sends it in parts, which are SETUP messages:
 *
 *     part 1     items "servers" (endpoints with commas), "program" and
 *                "startup" (Paddle's ProgramDesc), as bytes
 *     part 2 ..  start values, as items or slices with the names of the
 *                server's variables
 *
 * A server that keeps a state keeps the job as one part, which has a further
 * item "values": names of variables, each with a NUL at its end, that have no
 * start values here, because the state holds their values.
 *
 * Nothing that comes is believed. Programs are decoded within limits and
 * verified, they may use the operators of a short list only, and all that they
 * declare must fit into memory.
 * Thread: one at a time. */
#ifndef FL_PSERVER_ARRIVAL_H
#define FL_PSERVER_ARRIVAL_H

#include "cluster/placement.h"
#include "exec/exe.h"
#include "net/packet.h"
#include "protocol/message.h"

typedef struct fl_arrival fl_arrival;

typedef struct fl_arrival_opts {
    const fl_exec_env *env; /* runs the startup program; it outlives all */
    int trainers;           /* that the server was started for */
    int64_t most;           /* bytes that all variables may have; 0: 16 GiB */
    bool kept;              /* the job is from a state, which has the values */
} fl_arrival_opts;

/* Own: new. Free ends the program and the scope, too; NULL is fine. */
fl_arrival *fl_arrival_new(const fl_arrival_opts *opts);
void fl_arrival_free(fl_arrival *a);

/* Take a part; one that was taken before is passed over. *done: all parts are
 * here. After an error the arrival is of no use any more. Err: EPROTO, EINVAL,
 * ENOMEM and those of the startup program. */
fl_err fl_arrival_take(fl_arrival *a, const fl_msg *m,
                       bool *done) FL_MUST_CHECK;

/* --- once all parts are here --- */

/* The server's program. Its job is its placement. */
const fl_program *fl_arrival_program(const fl_arrival *a);
const fl_op *fl_arrival_op(const fl_arrival *a); /* listen_and_serv */
fl_scope *fl_arrival_scope(const fl_arrival *a);

/* The job as one part, for a state. `who` brought it. Own: the packet is new;
 * it borrows from the arrival. */
fl_packet *fl_arrival_encode(const fl_arrival *a, const char *who);

#endif
