/* SPDX-License-Identifier: Apache-2.0 */
/* mpi.c - collective calls by MPI, for clusters whose fast network only MPI
 * reaches. FLUID_COLLECTIVE=mpi loads it; mpirun or srun starts the ranks.
 *
 * MPI counts by int: longer buffers go in pieces. A rank that fails ends the
 * whole job by MPI_Abort, since MPI has no other way to tell the others. */
#include "collective/plugin.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE = 1 << 28, /* elements, or bytes, of one MPI call */
};

typedef struct group {
    int rank, ranks;
} group;

static group world; /* MPI has one world in a process */

static int check(int code, const char *call, char *why)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;
    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &n);
    snprintf(why, FL_PLUGIN_WHY, "%s: %s", call, text);
    return 1;
}

static MPI_Op op_of(fl_plugin_reduce how)
{
    return how == FL_PLUGIN_SUM   ? MPI_SUM
           : how == FL_PLUGIN_MAX ? MPI_MAX
           : how == FL_PLUGIN_MIN ? MPI_MIN
                                  : MPI_PROD;
}

static MPI_Datatype type_of(fl_plugin_type type, size_t *size)
{
    *size = type == FL_PLUGIN_F32 || type == FL_PLUGIN_I32 ? 4 : 8;
    return type == FL_PLUGIN_F32   ? MPI_FLOAT
           : type == FL_PLUGIN_F64 ? MPI_DOUBLE
           : type == FL_PLUGIN_I32 ? MPI_INT32_T
                                   : MPI_INT64_T;
}

static int count_local(int *local, char *why)
{
    MPI_Comm here;
    if (check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                                  MPI_INFO_NULL, &here),
              "MPI_Comm_split_type", why))
        return 1;
    MPI_Comm_size(here, local);
    MPI_Comm_free(&here);
    return 0;
}

static int mpi_join(int rank, int ranks, void **self, int *local, char *why)
{
    int started, threads;
    MPI_Initialized(&started);
    if (!started &&
        check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads),
              "MPI_Init_thread", why))
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    if (world.rank != rank || world.ranks != ranks) {
        snprintf(why, FL_PLUGIN_WHY,
                 "the program is rank %d of %d, but MPI says that this process "
                 "is rank %d of %d: start it with mpirun -np %d, and give it "
                 "the rank that MPI does",
                 rank, ranks, world.rank, world.ranks, ranks);
        return 1;
    }
    *self = &world;
    return count_local(local, why);
}

static int mpi_all_reduce(void *self, fl_plugin_reduce how, fl_plugin_type type,
                          void *x, int64_t n, char *why)
{
    size_t size;
    const MPI_Datatype t = type_of(type, &size);
    (void)self;
    for (int64_t at = 0; at < n; at += PIECE) {
        const int k = (int)(n - at < PIECE ? n - at : PIECE);
        if (check(MPI_Allreduce(MPI_IN_PLACE, (char *)x + (size_t)at * size, k,
                                t, op_of(how), MPI_COMM_WORLD),
                  "MPI_Allreduce", why))
            return 1;
    }
    return 0;
}

/* MPI leaves the own part at the start of x. */
static int mpi_reduce_scatter(void *self, fl_plugin_reduce how,
                              fl_plugin_type type, void *x, int64_t n,
                              char *why)
{
    const group *g = self;
    size_t size;
    const MPI_Datatype t = type_of(type, &size);
    if (n > PIECE) {
        snprintf(why, FL_PLUGIN_WHY,
                 "%lld elements a rank are too many for "
                 "MPI, at most %d",
                 (long long)n, PIECE);
        return 1;
    }
    if (check(MPI_Reduce_scatter_block(MPI_IN_PLACE, x, (int)n, t, op_of(how),
                                       MPI_COMM_WORLD),
              "MPI_Reduce_scatter_block", why))
        return 1;
    memmove((char *)x + (size_t)g->rank * (size_t)n * size, x,
            (size_t)n * size);
    return 0;
}

static int mpi_broadcast(void *self, int root, void *x, size_t size, char *why)
{
    (void)self;
    for (size_t at = 0; at < size; at += PIECE) {
        const int k = (int)(size - at < PIECE ? size - at : PIECE);
        if (check(MPI_Bcast((char *)x + at, k, MPI_BYTE, root, MPI_COMM_WORLD),
                  "MPI_Bcast", why))
            return 1;
    }
    return 0;
}

static int mpi_all_gather(void *self, void *x, const size_t *at, char *why)
{
    const group *g = self;
    for (int i = 0; i < g->ranks; i++)
        if (mpi_broadcast(self, i, (char *)x + at[i], at[i + 1] - at[i], why))
            return 1;
    return 0;
}

static int mpi_barrier(void *self, char *why)
{
    (void)self;
    return check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", why);
}

static void mpi_fail(void *self, const char *why)
{
    const group *g = self;
    fprintf(stderr, "fluid: rank %d ends the MPI job: %s\n", g->rank, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void mpi_leave(void *self)
{
    int ended;
    (void)self;
    MPI_Finalized(&ended);
    if (!ended)
        MPI_Finalize();
}

extern const fl_plugin fl_collective_plugin;
const fl_plugin fl_collective_plugin = {
    .abi = FL_PLUGIN_ABI,
    .name = "mpi",
    .join = mpi_join,
    .all_reduce = mpi_all_reduce,
    .reduce_scatter = mpi_reduce_scatter,
    .all_gather = mpi_all_gather,
    .broadcast = mpi_broadcast,
    .barrier = mpi_barrier,
    .fail = mpi_fail,
    .leave = mpi_leave,
};
