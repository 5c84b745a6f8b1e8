/* service.h - what operators of an engine's programs talk to: the trainers of
 * the jobs that its programs are parts of. One for an engine; no thread and no
 * socket exists before the first operator needs them. */
#ifndef FL_TRAINER_SERVICE_H
#define FL_TRAINER_SERVICE_H

#include "trainer/communicator.h"

typedef struct fl_service fl_service; /* Thread: lock */

fl_service *fl_service_new(void);
void fl_service_free(fl_service *s); /* trainers that did not leave complete */

/* The trainer of that place: found or made. It is the service's. */
fl_err fl_service_trainer(fl_service *s, const fl_placement *place,
                          fl_trainer **out) FL_MUST_CHECK;

/* The same, if it is there already; place NULL: that of the only job. NULL: it
 * is not. */
fl_trainer *fl_service_find(fl_service *s, const fl_placement *place);

/* From now on what p sends gathers. EINVAL: it does already, or p is no
 * trainer's program of an asynchronous job. */
fl_err fl_service_communicate(fl_service *s, const fl_program *p) FL_MUST_CHECK;
/* Of that place; NULL: none runs. */
fl_communicator *fl_service_communicator(fl_service *s,
                                         const fl_placement *place);
/* If one runs: all that has gathered is applied, and parameters of the scope
 * (or NULL) are newer than that. */
fl_err fl_service_flush(fl_service *s, const fl_placement *place,
                        fl_scope *scope, const fl_watch *by) FL_MUST_CHECK;
/* The same, and it ends, also if that failed. Not while its program runs. */
fl_err fl_service_hush(fl_service *s, const fl_placement *place,
                       const fl_watch *by) FL_MUST_CHECK;

/* The placement of the job whose servers hold a variable, the newest if there
 * are several; or NULL. */
const fl_placement *fl_service_keeper(fl_service *s, const char *var);

/* All trainers leave, as fl_engine_leave says. */
fl_err fl_service_leave(fl_service *s, int code, const char *why,
                        const fl_wait_opts *opts) FL_MUST_CHECK;

/* --- for the operators --- */

struct fl_call;

/* The place of the program that runs this op; if it has none, of the job that
 * keeps the op's W. EINVAL: neither. */
fl_err fl_call_place(struct fl_call *c, const fl_placement **out) FL_MUST_CHECK;

/* The trainer of that place. */
fl_err fl_call_trainer(struct fl_call *c, fl_trainer **out) FL_MUST_CHECK;

/* Who watches the run that this op is part of; or NULL. */
const fl_watch *fl_call_watch(const struct fl_call *c);

/* That gathers what it sends; NULL: none runs. */
fl_communicator *fl_call_communicator(struct fl_call *c);

/* Position of an endpoint in the place's list. EINVAL names both. */
fl_err fl_call_server(struct fl_call *c, const char *endpoint,
                      int *out) FL_MUST_CHECK;

#endif
