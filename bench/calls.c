/* CPU time of some cheap MPI calls: what a tracer adds shows here first.
 * Prints one line each: name, nanoseconds (the best of several rounds). Run it on one rank. */
#include "measure.h"
#include <mpi.h>

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
