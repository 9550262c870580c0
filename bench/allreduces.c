/* A loop of MPI_Allreduce, so many times: how many a second? */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, one = 1, sum = 0;
    long times = argc > 1 ? atol(argv[1]) : 1000000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double start = MPI_Wtime();
    for (long i = 0; i < times; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    if (rank == 0)
        printf("%.1f s, %.0f calls a second and rank\n", seconds, (double)times / seconds);
    MPI_Finalize();
    return 0;
}
