/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - `paddle pserver`: bare servers in one process, one on each address
 * and port.
 *
 * Each server is one of the job's; the ports differ in what trainers put there.
 * The process ends with its job. */
#ifndef FL_PSERVER_DAEMON_H
#define FL_PSERVER_DAEMON_H

#include "exec/exe.h"

/* What fl_serve does. env outlives the call. */
fl_err fl_daemon_run(const fl_exec_env *env,
                     const fl_serve_opts *opts) FL_MUST_CHECK;

#endif
