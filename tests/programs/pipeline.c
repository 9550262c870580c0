/* Work goes from rank to rank, as in a wavefront. argv[1]: pieces (default 10). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, piece[24];
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 24; i++)
            piece[i] = step * 13 + i;
        if (rank > 0)
            MPI_Recv(piece, 24, MPI_INT, rank - 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 24; i++)
            piece[i] = (piece[i] * 3 + rank) % 9973;
        see(piece, 24);
        if (rank + 1 < size)
            MPI_Send(piece, 24, MPI_INT, rank + 1, 17, MPI_COMM_WORLD);
    }
    finish("pipeline");
}
