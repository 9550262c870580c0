/* What MPI's clocks return, every bit of it: rank 0 prints it for all ranks. First argument: rounds (default 50). */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 50, at = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int count = 3 * rounds;
    double *own = malloc(count * sizeof *own), *all = malloc((size_t)size * count * sizeof *all);
    for (int round = 0; round < rounds; round++) {
        own[at++] = MPI_Wtime();
        if (round % 7 == rank)
            MPI_Barrier(MPI_COMM_SELF);
        own[at++] = PMPI_Wtime();
        own[at++] = MPI_Wtick();
        if (round % 10 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Gather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size * count; i++) {
        uint64_t bits;
        memcpy(&bits, &all[i], sizeof bits);
        printf("clock %d %016llx\n", i / count, (unsigned long long)bits);
    }
    free(own);
    free(all);
    MPI_Finalize();
    return 0;
}
