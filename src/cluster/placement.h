/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - a program's part in a job: the job's servers and trainers, and
 * which server holds which elements of which variable.
 *
 * The transpiler makes a placement, and the program carries it as its `job`;
 * servers and trainers read it. It is not written to files: a program that was
 * loaded must be transpiled again. */
#ifndef FL_CLUSTER_PLACEMENT_H
#define FL_CLUSTER_PLACEMENT_H

#include "base/arena.h"
#include "base/handle.h"
#include "protocol/job.h"
#include "tensor/tensor.h"

enum {
    FL_BY_ID = -1 /* the row of an id is on server fl_id_server */
};

static inline int fl_id_server(int64_t id, int servers)
{
    const int64_t s = id % servers;
    return (int)(s < 0 ? s + servers : s);
}

/* Elements of a variable that one server holds. */
typedef struct fl_piece {
    const char *var;  /* name in the program that was transpiled */
    const char *name; /* name on the server */
    int server;
    int64_t first; /* index of the first element in the variable; or FL_BY_ID */
    fl_shape shape; /* of the piece; by id: of the whole variable */
} fl_piece;

/* Immutable once a program has it. */
typedef struct fl_placement {
    fl_handle handle;
    fl_arena *arena; /* holds what it points to */
    int n_servers;
    const char *const *servers; /* endpoints; the first is the coordinator */
    int server;     /* index of this server; -1: this is a trainer */
    int trainer_id; /* or FL_ANY_ID */
    int trainers;
    bool async;
    bool half_async;    /* the threads of a trainer meet after every batch */
    uint64_t digest[2]; /* hash of all that the processes must agree on */
    uint64_t tables[2]; /* digest of names and shapes of the tables by id; it
                           does not depend on the number of servers */
    int n_pieces;
    const fl_piece *pieces;
    const char *about; /* a line "NAME SHAPE" for each piece; may be cut */
    /* In a trainer's main program: the encoded program that was transpiled,
     * from which models are saved. */
    const void *origin;
    size_t origin_size;
} fl_placement;

/* A copy of the fields up to `pieces` and of the origin, and of all that they
 * point to. Own: end with fl_handle_unref(&p->handle). */
fl_placement *fl_placement_new(const fl_placement *like);

/* The placement that a program carries as its job; NULL: it is in no job. */
static inline const fl_placement *fl_placement_of(const fl_handle *job)
{
    return (const fl_placement *)job;
}

/* The job of a placement. Limits that are 0 get their defaults. The texts are
 * borrowed from the placement. */
fl_job fl_placement_job(const fl_placement *p, const fl_job *limits);

#endif
