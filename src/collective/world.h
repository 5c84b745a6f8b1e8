/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - the ranks of a collective job, as one of them sees them.
 *
 *     gen_nccl_id, c_gen_nccl_id   join the ranks that their endpoints name
 *     c_comm_init                  gives the joined ranks the number ring_id
 *     c_allreduce_sum and others   work on the ranks of their ring_id
 *     c_sync_comm_stream           returns when all calls of its ring are done
 *
 * All rings whose endpoints are the same share one world and its connections.
 * A world ends with its engine: it says farewell, or tells the others why this
 * rank failed (fl_worlds_leave). A failure of any rank is final: every later
 * call of every rank returns it, within seconds.
 *
 * What the environment says is read when ranks join:
 *
 *     FLUID_COLLECTIVE           ring (default) or mpi: what carries the calls
 *     FLUID_START                s until all ranks are there (600)
 *     FLUID_COLLECTIVE_TIMEOUT   s of a wait without progress (1800)
 *     FLUID_OVERLAP              1 or 0: reduce while backward runs; by default
 *                                where there are more cores than ranks
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

/* The world of these endpoints: found, or joined now. `id` names it for
 * fl_worlds_name, as the variable NCCLID does in programs. p is the program
 * that joins; it must be the same on all ranks. Blocks: until all ranks have
 * come; by (or NULL) may end the wait. Err: as fl_mesh_join and fl_agree. */
fl_err fl_worlds_join(fl_worlds *w, const char *id, int ranks,
                      const char *const *endpoints, int rank,
                      const fl_program *p, fl_watch *by) FL_MUST_CHECK;

/* From now on `ring` is the world that was joined as `id`. Err: ENOENT (nothing
 * was joined as id), EINVAL (it has another number of ranks, or this process
 * another rank; ranks 0: not compared). */
fl_err fl_worlds_name(fl_worlds *w, int64_t ring, const char *id, int64_t ranks,
                      int64_t rank) FL_MUST_CHECK;

/* Own: the caller's reference, for fl_world_unref. Err: ENOENT. */
fl_err fl_worlds_find(fl_worlds *w, int64_t ring, fl_world **out) FL_MUST_CHECK;

/* All worlds end. code 0: this rank is done; otherwise the other ranks fail,
 * and their sentence has `why`. */
void fl_worlds_leave(fl_worlds *w, int code, const char *why);

fl_world *fl_world_ref(fl_world *w);
void fl_world_unref(fl_world *w); /* NULL is fine */
int fl_world_rank(const fl_world *w);
int fl_world_ranks(const fl_world *w);

/* All ranks run p. Ranks talk only where it is new. Err: as fl_agree. */
fl_err fl_world_agree(fl_world *w, const fl_program *p,
                      fl_watch *by) FL_MUST_CHECK;

/* See fl_reducer_add and fl_reducer_wait. */
fl_err fl_world_reduce(fl_world *w, const fl_reduction *x) FL_MUST_CHECK;
fl_err fl_world_wait(fl_world *w, fl_watch *by) FL_MUST_CHECK;

/* This rank stopped between fl_world_reduce and fl_world_wait: the values are
 * not touched any more, and all ranks fail. */
void fl_world_abandon(fl_world *w);

/* Calls that wait for their result, as net/ring.h says. `var` is for sentences.
 */
fl_err fl_world_broadcast(fl_world *w, const char *var, int64_t root, void *x,
                          size_t size, fl_watch *by) FL_MUST_CHECK;
fl_err fl_world_all_gather(fl_world *w, const char *var, void *x,
                           const size_t *at, fl_watch *by) FL_MUST_CHECK;
fl_err fl_world_reduce_scatter(fl_world *w, const char *var, fl_dtype type,
                               void *x, int64_t n, fl_watch *by) FL_MUST_CHECK;

#endif
