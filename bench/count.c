/* One cheap MPI call, so many times: for counting instructions. Run it on one rank: count FUNCTION TIMES. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "MPI_Comm_rank";
    int times = argc > 2 ? atoi(argv[2]) : 10000, rank, flag, out = 1, in;
    MPI_Request requests[2];
    for (int i = 0; i < times; i++) {
        if (!strcmp(what, "MPI_Comm_rank")) {
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        } else if (!strcmp(what, "MPI_Iprobe")) {
            MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        } else if (!strcmp(what, "MPI_Sendrecv")) {
            MPI_Sendrecv(&out, 1, MPI_INT, 0, 3, &in, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Isend(&out, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
