/* Ranks of the same parity know only each other: messages in the world, collectives in a communicator of their own. */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int own = rank, other = 0;
    int peer = rank >= 2 ? rank - 2 : rank + 2 < size ? rank + 2 : rank;
    MPI_Comm half;
    MPI_Sendrecv(&own, 1, MPI_INT, peer, 1, &other, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Bcast(&other, 1, MPI_INT, 0, half);
    MPI_Allreduce(&own, &other, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
