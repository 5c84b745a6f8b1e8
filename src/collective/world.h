/* world.h - the ranks of a collective job, as one of them sees them.
 *
 *     c_gen_nccl_id, gen_nccl_id   join the ranks that their endpoints name
 *     c_comm_init                  gives the joined ranks the number ring_id
 *     c_allreduce_sum and others   work on the ranks of their ring_id
 *     c_sync_comm_stream           returns when all calls of its ring are done
 *
 * All rings whose endpoints are the same share one world and its connections.
 * A world ends with its engine: it says farewell, or tells the others why this
 * rank failed (fl_worlds_leave). A failure of any rank is final: every later
 * call of every rank returns it, within seconds. */
#ifndef FL_COLLECTIVE_WORLD_H
#define FL_COLLECTIVE_WORLD_H

#include "exec/watch.h"
#include "net/ring.h"
#include "tensor/value.h"

typedef struct fl_worlds fl_worlds; /* of an engine. Thread: lock */
typedef struct fl_world fl_world;   /* Thread: one at a time */

/* No socket and no thread exists before the first join. */
fl_worlds *fl_worlds_new(void);
void fl_worlds_free(fl_worlds *w);

/* The world of these endpoints: found, or joined now. `id` names it for
 * fl_worlds_name, as the variable NCCLID does in programs. Blocks: until all
 * ranks have come; by (or NULL) may end the wait. Own: the world is w's. Err:
 * as fl_mesh_join. */
fl_err fl_worlds_join(fl_worlds *w, const char *id, int ranks,
                      const char *const *endpoints, int rank,
                      const fl_watch *by, fl_world **out) FL_MUST_CHECK;

/* From now on `ring` is the world that was joined as `id`. Err: ENOENT (nothing
 * was joined as id), EINVAL (it has another number of ranks, or this process
 * another rank). */
fl_err fl_worlds_name(fl_worlds *w, int64_t ring, const char *id, int64_t ranks,
                      int64_t rank) FL_MUST_CHECK;

/* Err: ENOENT. */
fl_err fl_worlds_find(fl_worlds *w, int64_t ring, fl_world **out) FL_MUST_CHECK;

/* All worlds end. code 0: this rank is done; otherwise the other ranks fail,
 * and their sentence has `why`. */
void fl_worlds_leave(fl_worlds *w, int code, const char *why);

int fl_world_rank(const fl_world *w);
int fl_world_ranks(const fl_world *w);

#endif
