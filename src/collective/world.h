/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - the ranks of a collective job, as one of them sees them.
 *
 *     gen_nccl_id, c_gen_nccl_id   join the ranks that their endpoints name
 *     c_comm_init                  gives the joined ranks the number ring_id
 *     c_allreduce_sum and others   work on the ranks of their ring_id
 *     c_sync_comm_stream           returns when all calls of its ring are done
 *
 * Rings with the same endpoints share one world and its connections. A world
 * ends with its engine: this rank tells the others that it is done, or why it
 * failed (fl_worlds_leave). A failure of any rank is final: within seconds
 * every later call of every rank returns it.
 *
 * These environment variables are read when ranks join:
 *
 *     FLUID_COLLECTIVE           the backend: ring (default) or mpi
 *     FLUID_START                seconds until all ranks have joined (600)
 *     FLUID_COLLECTIVE_TIMEOUT   seconds of a wait without progress (1800)
 *     FLUID_OVERLAP              1 or 0: reduce while backward runs; default: 1
 *                                if there are more cores than ranks
 *     FLUID_JOB_KEY_FILE, FLUID_JOB_KEY_FD   see cluster/key.h */
#ifndef FL_COLLECTIVE_WORLD_H
#define FL_COLLECTIVE_WORLD_H

#include "collective/reducer.h"
#include "exec/watch.h"
#include "graph/program.h"

typedef struct fl_worlds fl_worlds; /* of an engine. Thread: lock */
typedef struct fl_world fl_world;   /* Thread: one at a time. Counted. */

/* No socket and no thread exists before the first join. */
fl_worlds *fl_worlds_new(void);
void fl_worlds_free(fl_worlds *w); /* leaves with code 0 */

/* Join the ranks at these endpoints, unless that was done before. `id` names
 * the world for fl_worlds_name, as the variable NCCLID does in programs. p is
 * the program that joins; it must be the same on all ranks. Blocks: until all
 * ranks have joined; `by` may end the wait (NULL: nobody). Err: as fl_mesh_join
 * and fl_agree. */
fl_err fl_worlds_join(fl_worlds *w, const char *id, int ranks,
                      const char *const *endpoints, int rank,
                      const fl_program *p, fl_watch *by) FL_MUST_CHECK;

/* Let `ring` stand for the world that was joined as `id`. Err: ENOENT (there is
 * no such world), EINVAL (it has another number of ranks, or this process
 * another rank; ranks 0: not compared). */
fl_err fl_worlds_name(fl_worlds *w, int64_t ring, const char *id, int64_t ranks,
                      int64_t rank) FL_MUST_CHECK;

/* The world of a ring. Own: a reference; end it with fl_world_unref. Err:
 * ENOENT. */
fl_err fl_worlds_find(fl_worlds *w, int64_t ring, fl_world **out) FL_MUST_CHECK;

/* End all worlds. Code 0: this rank is done; otherwise the other ranks fail
 * with a message that contains `why`. */
void fl_worlds_leave(fl_worlds *w, int code, const char *why);

fl_world *fl_world_ref(fl_world *w);
void fl_world_unref(fl_world *w); /* NULL is fine */
int fl_world_rank(const fl_world *w);
int fl_world_ranks(const fl_world *w);

/* Check that all ranks run p. Only the first call for a program communicates.
 * Err: as fl_agree. */
fl_err fl_world_agree(fl_world *w, const fl_program *p,
                      fl_watch *by) FL_MUST_CHECK;

/* See fl_reducer_add and fl_reducer_wait. */
fl_err fl_world_reduce(fl_world *w, const fl_reduction *x) FL_MUST_CHECK;
fl_err fl_world_wait(fl_world *w, fl_watch *by) FL_MUST_CHECK;

/* This rank stopped between fl_world_reduce and fl_world_wait: the values are
 * not touched any more, and all ranks fail. */
void fl_world_abandon(fl_world *w);

/* Collective calls that wait for their result; see net/ring.h. `var` is for
 * error messages. */
fl_err fl_world_broadcast(fl_world *w, const char *var, int64_t root, void *x,
                          size_t size, fl_watch *by) FL_MUST_CHECK;
fl_err fl_world_all_gather(fl_world *w, const char *var, void *x,
                           const size_t *at, fl_watch *by) FL_MUST_CHECK;
fl_err fl_world_reduce_scatter(fl_world *w, const char *var, fl_dtype type,
                               void *x, int64_t n, fl_watch *by) FL_MUST_CHECK;

#endif
