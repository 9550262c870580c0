/* A heat equation on a rod, one piece of it a rank. Rank 1 computes longer than the others in each step; every third step the last
 * rank tells rank 0 something, and is late. First argument: steps (default 12). */
#include "common.h"
#include "spend.h"

#define CELLS 64

int main(int argc, char **argv)
{
    double u[CELLS + 2] = {0}, next[CELLS + 2] = {0}, change, most = 0;
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 12;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    if (rank == 0)
        u[1] = 1000;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[4];
        MPI_Irecv(&u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&u[CELLS + 1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&u[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&u[CELLS], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        change = 0;
        for (int i = 1; i <= CELLS; i++) {
            next[i] = u[i] + 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]);
            change += next[i] > u[i] ? next[i] - u[i] : u[i] - next[i];
        }
        memcpy(&u[1], &next[1], CELLS * sizeof(double));
        spend(rank == 1 ? 3000000 : 1000000);
        if (size > 1 && step % 3 == 2) {
            double piece[CELLS];
            memcpy(piece, &u[1], sizeof piece);
            if (rank == size - 1) {
                spend(2000000);
                MPI_Send(piece, CELLS, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
            } else if (rank == 0) {
                MPI_Recv(piece, CELLS, MPI_DOUBLE, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    see(&(int){(int)(most * 1000)}, 1);
    finish("heat");
    return 0;
}
