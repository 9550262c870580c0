/* A token once around the ring. argv[1]: the exit code of every rank (default 0). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int token = 1, left = (rank + size - 1) % size, right = (rank + 1) % size;
    if (size > 1) {
        if (rank > 0)
            MPI_Recv(&token, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token += rank;
        MPI_Send(&token, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Recv(&token, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    see(&token, 1);
    int code = argc > 1 ? atoi(argv[1]) : 0;
    finish("ring");
    return code;
}
