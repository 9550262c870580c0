/* Ten million calls of a regular program, and the memory of the process on the way: with a tracer it must stay flat.
 * Prints `calls KiB` lines. Run it on one rank. */
#include <mpi.h>
#include <stdio.h>

enum { STEPS = 2500000, CALLS_A_STEP = 4 };

static long resident(void)
{
    long pages = 0, rest = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &rest, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return pages * 4;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int out = 1, in, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < STEPS; step++) {
        if (step % (STEPS / 5) == 0)
            printf("%9d %6ld\n", step * CALLS_A_STEP, resident());
        MPI_Request requests[2];
        MPI_Irecv(&in, 1, MPI_INT, rank, step % 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, rank, step % 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    printf("%9d %6ld\n", STEPS * CALLS_A_STEP, resident());
    MPI_Finalize();
    return 0;
}
