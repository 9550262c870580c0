/* A call with a new string each time: info objects whose values nobody set before. Prints how long the calls took and how
 * long all of it did with MPI_Finalize, in seconds. Run it on one rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OBJECTS = 68000 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    int objects = argc > 1 ? atoi(argv[1]) : OBJECTS;
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = seconds();
    for (int i = 0; i < objects; i++) {
        char value[64];
        snprintf(value, sizeof value, "/scratch/run/rank%d/checkpoint.%07d", rank, i);
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "filename", value);
        MPI_Info_free(&info);
    }
    double called = seconds();
    MPI_Finalize();
    double ended = seconds();
    if (rank == 0)
        printf("calls %d in %.3f s, with MPI_Finalize %.3f s\n", 3 * objects + 5, called - start, ended - start);
    return 0;
}
