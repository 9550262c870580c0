/* A sum up a binary tree of ranks, and back down, by hand. argv[1]: steps (default 10). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, sum[8], in[8];
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 8; i++)
            sum[i] = rank + step * i;
        for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < size; child++) {
            MPI_Recv(in, 8, MPI_INT, child, 19, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < 8; i++)
                sum[i] += in[i];
        }
        if (rank > 0) {
            MPI_Send(sum, 8, MPI_INT, (rank - 1) / 2, 19, MPI_COMM_WORLD);
            MPI_Recv(sum, 8, MPI_INT, (rank - 1) / 2, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < size; child++)
            MPI_Send(sum, 8, MPI_INT, child, 23, MPI_COMM_WORLD);
        see(sum, 8);
    }
    finish("tree");
}
