/* Rank 0 hands out work, in turn: a worker brings its last result and gets the next piece. argv[1]: rounds (default 10). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, work[16] = {0}, result[16] = {0};
    MPI_Status status;
    memset(&status, 0, sizeof status);
    for (int step = 0; step < steps; step++) {
        if (rank == 0) {
            for (int worker = 1; worker < size; worker++) {
                MPI_Recv(result, 16, MPI_INT, worker, 29, MPI_COMM_WORLD, &status);
                see(result, 16);
                for (int i = 0; i < 16; i++)
                    work[i] = (result[i] + step * worker) % 9973;
                MPI_Send(work, 16, MPI_INT, worker, 31, MPI_COMM_WORLD);
            }
        } else {
            MPI_Send(result, 16, MPI_INT, 0, 29, MPI_COMM_WORLD);
            MPI_Recv(work, 16, MPI_INT, 0, 31, MPI_COMM_WORLD, &status);
            for (int i = 0; i < 16; i++)
                result[i] = work[i] * 2 + rank;
        }
    }
    finish("masterworker");
}
