/* Ranks that compute for known times between their messages. argv[1]: how; argv[2]: steps.
 * turns: one rank computes while the other waits for it; drawn: each for as long as is drawn; overlap: while messages are on
 * their way; blocks: long stretches with many short calls between them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(double seconds)
{
    double end = now() + seconds;
    while (now() < end)
        ;
}

static unsigned state = 12345;

static double drawn(void)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

int main(int argc, char **argv)
{
    int rank, size, value = 0, sum;
    const char *how = argc > 1 ? argv[1] : "turns";
    int steps = argc > 2 ? atoi(argv[2]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    static double out[4096], in[4096];
    for (int step = 0; step < steps; step++) {
        if (strcmp(how, "turns") == 0) {
            if (rank > 0)
                MPI_Recv(&value, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(0.005);
            MPI_Send(&value, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
            if (rank == 0)
                MPI_Recv(&value, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (strcmp(how, "drawn") == 0) {
            for (int r = 0; r < size; r++) {
                double time = 0.01 * drawn();
                if (r == rank)
                    compute(time);
            }
            MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else if (strcmp(how, "overlap") == 0) {
            MPI_Request requests[2];
            MPI_Irecv(in, 4096, MPI_DOUBLE, last, 2, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out, 4096, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, &requests[1]);
            compute(0.006);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            compute(0.002);
        } else {
            compute(0.05);
            for (int i = 0; i < 200; i++)
                MPI_Sendrecv(out, 64, MPI_DOUBLE, next, 3, in, 64, MPI_DOUBLE, last, 3, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
