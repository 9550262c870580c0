/* Ranks whose messages differ from step to step, in peer or length, with computation between them. argv[1]: how; argv[2]: steps;
 * argv[3]: 1 to sleep where they compute. sizes: a ring with messages of other lengths in each step; partners: another partner in
 * each step; wave: from the first rank to the last, with a reduction at the end; pool: one rank hands out work of different
 * lengths; neighbours: both sides, at the ends of the row only one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 16 };

static int sleeps;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(double seconds)
{
    if (sleeps) {
        struct timespec t = {0, (long)(seconds * 1e9)};
        nanosleep(&t, NULL);
        return;
    }
    double end = now() + seconds;
    while (now() < end)
        ;
}

static unsigned state = 12345;

/* The same on all ranks. */
static int drawn(int most)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)most);
}

int main(int argc, char **argv)
{
    int rank, size;
    const char *how = argc > 1 ? argv[1] : "sizes";
    int steps = argc > 2 ? atoi(argv[2]) : 100;
    sleeps = argc > 3 && atoi(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size, sum;
    static double out[MOST], in[MOST];
    for (int step = 0; step < steps; step++) {
        int length = 1 + drawn(step % 10 == 0 ? MOST - 1 : 500);
        if (strcmp(how, "sizes") == 0) {
            compute(0.004);
            MPI_Sendrecv(out, length, MPI_DOUBLE, next, 1, in, MOST, MPI_DOUBLE, last, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        } else if (strcmp(how, "partners") == 0) {
            int far = 1 + drawn(size - 1);
            MPI_Request requests[2];
            MPI_Irecv(in, MOST, MPI_DOUBLE, (rank + size - far) % size, 2, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out, length, MPI_DOUBLE, (rank + far) % size, 2, MPI_COMM_WORLD, &requests[1]);
            compute(0.004);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            if (step % 5 == 4)
                MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else if (strcmp(how, "wave") == 0) {
            for (int block = 0; block < 4; block++) {
                if (rank > 0)
                    MPI_Recv(in, MOST, MPI_DOUBLE, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                compute(0.002);
                if (rank < size - 1)
                    MPI_Send(out, length / (block + 1) + 1, MPI_DOUBLE, rank + 1, 3, MPI_COMM_WORLD);
            }
            MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else if (strcmp(how, "pool") == 0) {
            if (rank == 0) {
                for (int worker = 1; worker < size; worker++)
                    MPI_Send(out, length + worker, MPI_DOUBLE, worker, 4, MPI_COMM_WORLD);
                for (int worker = 1; worker < size; worker++)
                    MPI_Recv(in, MOST, MPI_DOUBLE, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(in, MOST, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                compute(0.005);
                MPI_Send(out, length, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
            }
        } else {
            int sides[2] = {rank > 0 ? rank - 1 : MPI_PROC_NULL, rank < size - 1 ? rank + 1 : MPI_PROC_NULL};
            MPI_Request requests[4];
            compute(0.004);
            for (int side = 0; side < 2; side++) {
                MPI_Irecv(in, MOST, MPI_DOUBLE, sides[side], 5, MPI_COMM_WORLD, &requests[side]);
                MPI_Isend(out, length, MPI_DOUBLE, sides[side], 5, MPI_COMM_WORLD, &requests[2 + side]);
            }
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
