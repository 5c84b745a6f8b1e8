/* SPDX-License-Identifier: Apache-2.0 */
/* pserver.h - a server process: network and threads around the state machines.
 *
 *     I/O threads (net/)  decode a message and look for NaN; then, under the
 *                         lock, give it to a state machine (machines.h)
 *     owner threads       apply rounds, read values (store.h)
 *     the caller          ticks the machines, polls for signals
 *
 * A bare server is started without a program. It listens first; trainer 0
 * brings the program (arrival.h), and then the machines are made. A state that
 * it keeps has the program, too, so a bare server that is started again goes on
 * with its job. */
#ifndef FL_PSERVER_PSERVER_H
#define FL_PSERVER_PSERVER_H

#include "cluster/placement.h"
#include "exec/exe.h"

typedef struct fl_pserver_opts {
    const fl_exec_env *env;    /* for plans; watch->poll may end the server */
    const fl_program *program; /* its block 0 has listen_and_serv; NULL: the
                                  server is bare */
    const fl_op *op;           /* the listen_and_serv op */
    fl_scope *scope;           /* where the startup program has run: what it
                                  has left absent is in the state */
    fl_job limits;             /* a limit of 0 is taken from the environment */
    /* Of a bare server: */
    const char *address;    /* where it listens, "host:port" */
    int trainers;           /* of the job */
    bool keep;              /* another job may follow this one */
    const char *durability; /* level; NULL or "": as FLUID_DURABILITY says */
    /* The server has got a job, or has given up the one that its state had;
     * NULL: nobody is told. */
    void (*busy)(void *user, bool is);
    void *user;
} fl_pserver_opts;

/* Serve until the job has ended. A bare server that is ended before a job came
 * has not failed. Err: EINTR if SIGTERM, SIGINT (where these had no handler) or
 * the poll ended the server before the job was complete; else the first failure
 * of the job. Blocks: for as long as the job runs. */
fl_err fl_pserve(const fl_pserver_opts *opts) FL_MUST_CHECK;

/* The operator whose kernel calls fl_pserve: op_listen.c. */
extern const fl_op_def fl_op_listen_and_serv;

#endif
