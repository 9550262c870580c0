/* CPU time of some cheap MPI calls: what a tracer adds shows here first.
 * Prints one line each: name, nanoseconds (the best of several rounds). Run it on one rank. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 15, CALLS = 20000 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#define MEASURE(name, statement)                          \
    do {                                                  \
        double best = 1e30;                               \
        for (int round = 0; round < ROUNDS; round++) {    \
            double start = cpu_ns();                      \
            for (int i = 0; i < CALLS; i++) {             \
                statement;                                \
            }                                             \
            double each = (cpu_ns() - start) / CALLS;     \
            best = each < best ? each : best;             \
        }                                                 \
        printf("%s %.1f\n", name, best);                  \
    } while (0)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, flag, out = 1, in;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MEASURE("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MEASURE("MPI_Iprobe", MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    MEASURE("MPI_Sendrecv", MPI_Sendrecv(&out, 1, MPI_INT, rank, 3, &in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD,
                                         MPI_STATUS_IGNORE));
    MPI_Request requests[2];
    MEASURE("Isend+Irecv+Waitall", MPI_Isend(&out, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(&in, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPI_Finalize();
    return 0;
}
