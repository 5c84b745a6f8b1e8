/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce_mpi - bench/allreduce with MPI_Allreduce: the peer of its figures.
 * Run it with mpirun; the argument is what the lines say under "over". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 7,
};

static const size_t sizes[] = {4 << 10, 1 << 20, 64 << 20};

static double sample_us(float *x, size_t bytes)
{
    const int times = bytes <= 4096 ? 1000 : bytes <= 1 << 20 ? 100 : 3;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < times; i++)
        MPI_Allreduce(MPI_IN_PLACE, x, (int)(bytes / sizeof *x), MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) * 1e6 / times;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    float *x = calloc(1, 64 << 20);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double best = 1e18;
        sample_us(x, sizes[s]);
        for (int i = 0; i < SAMPLES; i++) {
            const double us = sample_us(x, sizes[s]);
            best = us < best ? us : best;
        }
        if (!rank)
            printf("{\"ranks\": %d, \"over\": \"%s\", \"bytes\": %zu, \"us\": "
                   "%.1f}\n",
                   ranks, argc > 1 ? argv[1] : "mpi", sizes[s], best);
        fflush(stdout);
    }
    MPI_Finalize();
    free(x);
    return 0;
}
