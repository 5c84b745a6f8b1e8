/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the trainers of an engine, one for each job that its programs are
 * in, and their communicators. The operators of those programs find them here.
 *
 * No thread and no socket exists before the first operator needs it. */
#ifndef FL_TRAINER_SERVICE_H
#define FL_TRAINER_SERVICE_H

#include "trainer/communicator.h"

typedef struct fl_service fl_service; /* Thread: any */

/* Own: new. fl_service_free completes all trainers that have not left yet. */
fl_service *fl_service_new(void);
void fl_service_free(fl_service *s);

/* The trainer of a placement, which is made at the first call. Own: the
 * service's. */
fl_err fl_service_trainer(fl_service *s, const fl_placement *place,
                          fl_trainer **out) FL_MUST_CHECK;

/* The trainer of a placement, or, if place is NULL, that of the only job. NULL:
 * there is none. */
fl_trainer *fl_service_find_trainer(fl_service *s, const fl_placement *place);

/* The placement of the job whose servers hold a variable; if there are several
 * jobs, that of the newest. NULL: no server holds it. */
const fl_placement *fl_service_find_placement(fl_service *s, const char *var);

/* Start a communicator, which takes over what p sends and receives. Err: EINVAL
 * if one runs already, or if p is not a trainer's program of an asynchronous
 * job. */
fl_err fl_service_start_communicator(fl_service *s,
                                     const fl_program *p) FL_MUST_CHECK;
/* Flush the communicator and end it, even if the flush fails. No thread may run
 * its program meanwhile. */
fl_err fl_service_stop_communicator(fl_service *s, const fl_placement *place,
                                    const fl_watch *by) FL_MUST_CHECK;
/* The communicator of a placement; NULL: none runs. */
fl_communicator *fl_service_communicator(fl_service *s,
                                         const fl_placement *place);
/* Flush the communicator, if one runs, then copy the parameters that it has
 * pulled into the scope (NULL: no copy). */
fl_err fl_service_flush(fl_service *s, const fl_placement *place,
                        fl_scope *scope, const fl_watch *by) FL_MUST_CHECK;

/* All trainers leave, as fl_engine_leave says. */
fl_err fl_service_leave(fl_service *s, int code, const char *why,
                        const fl_wait_opts *opts) FL_MUST_CHECK;

/* --- for the operators --- */

struct fl_call;

/* The placement of the program that runs this op; if the program has none, that
 * of the job that holds the op's W. Err: EINVAL if there is neither. */
fl_err fl_call_placement(struct fl_call *c,
                         const fl_placement **out) FL_MUST_CHECK;

/* The trainer of that placement. */
fl_err fl_call_trainer(struct fl_call *c, fl_trainer **out) FL_MUST_CHECK;

/* The watch of the run that this op is part of; or NULL. */
const fl_watch *fl_call_watch(const struct fl_call *c);

/* The communicator of the program that runs this op; NULL: none runs. */
fl_communicator *fl_call_communicator(struct fl_call *c);

/* The index of an endpoint in the placement's list of servers. Err: EINVAL. */
fl_err fl_call_server(struct fl_call *c, const char *endpoint,
                      int *out) FL_MUST_CHECK;

#endif
