/* service.h - what operators of an engine's programs talk to: the trainers of
 * the jobs that its programs are parts of. One for an engine; no thread and no
 * socket exists before the first operator needs them. */
#ifndef FL_DIST_SERVICE_H
#define FL_DIST_SERVICE_H

#include "dist/trainer.h"

typedef struct fl_service fl_service; /* Thread: lock */

fl_service *fl_service_new(void);
void fl_service_free(fl_service *s); /* trainers that did not leave complete */

/* The trainer of that place: found or made. It is the service's. */
fl_err fl_service_trainer(fl_service *s, const fl_place *place, fl_watch *watch,
                          fl_trainer **out) FL_MUST_CHECK;

/* All trainers leave, as fl_engine_leave says. */
fl_err fl_service_leave(fl_service *s, int code, const char *why,
                        const fl_wait_opts *opts) FL_MUST_CHECK;

/* --- for the operators --- */

struct fl_call;

/* The trainer of the program that runs this op. EINVAL: it was not transpiled.
 */
fl_err fl_call_trainer(struct fl_call *c, fl_trainer **out) FL_MUST_CHECK;

/* Position of an endpoint in the place's list. EINVAL names both. */
fl_err fl_call_server(struct fl_call *c, const char *endpoint,
                      int *out) FL_MUST_CHECK;

#endif
