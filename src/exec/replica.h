/* SPDX-License-Identifier: Apache-2.0 */
/* replica.h - a program on several places: a thread for each slice of a batch.
 *
 * Every place runs forward and backward on its slice with temporaries of its
 * own; parameters are shared and only read. Then gradients are added up in the
 * order of places, and updates run once (split.h). If a place writes
 * persistable variables (running means, counts), each place writes its own
 * copy. After the step the copies of the first place are kept, and the other
 * places start from them in the next step. */
#ifndef FL_EXEC_REPLICA_H
#define FL_EXEC_REPLICA_H

#include "base/pool.h"
#include "exec/plan.h"

/* Thread: one at a time. */
typedef struct fl_replicas fl_replicas;

/* Compile a program for n places. Own: *out is new. Program and scope outlive
 * it. */
fl_err fl_replicas_new(const fl_exec_env *env, const fl_request *o, int n,
                       fl_grad_scale scale, fl_replicas **out) FL_MUST_CHECK;
void fl_replicas_free(fl_replicas *r);

/* Whether r was made for this request, number of places and scale. */
bool fl_replicas_fit(const fl_replicas *r, const fl_request *o, int n,
                     fl_grad_scale scale);
const fl_key *fl_replicas_key(const fl_replicas *r);

/* Run on n threads of the pool. The feeds of the request are sliced. If
 * `apart`, the request has n times as many feeds instead: those of the first
 * place, then those of the second, and so on. Times of ops are added to
 * `watch`, which may be NULL. */
fl_err fl_replicas_run(fl_replicas *r, fl_pool *pool, fl_watch *watch,
                       const fl_request *o, bool apart,
                       fl_fetch *fetches) FL_MUST_CHECK;

#endif
