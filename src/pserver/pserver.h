/* pserver.h - a server process: the network and threads around the machines.
 *
 *     I/O threads (net/)  decode a message, look for NaN, then, under the lock,
 *                         feed the machine and send what its outbox holds
 *     owner threads       apply, read (pstore.h); no locks on data
 *     the caller          ticks the machines, polls for signals
 *
 * Server 0 is the coordinator, too: its two machines talk to each other without
 * the network. */
#ifndef FL_PSERVER_PSERVER_H
#define FL_PSERVER_PSERVER_H

#include "cluster/placement.h"
#include "exec/exe.h"

typedef struct fl_pserver_opts {
    const fl_exec_env *env;    /* for plans; watch->poll may end it */
    const fl_program *program; /* whose block 0 has listen_and_serv */
    const fl_op *op;           /* that one */
    fl_scope *scope;           /* holds the started parameters */
    fl_job limits;             /* zero: the environment's, or the default */
} fl_pserver_opts;

/* Serve until the job has ended. Err: EINTR if SIGTERM, SIGINT (where those did
 * what the system does by default) or the poll ended it before the job was
 * complete; else the first failure of the job. */
fl_err fl_pserve(const fl_pserver_opts *opts) FL_MUST_CHECK;

/* The operator that is a server process; op_listen.c. */
extern const fl_op_def fl_op_listen_and_serv;

#endif
