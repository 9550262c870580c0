/* A loop with a call that only some of its iterations make: barrier, send, barrier, then barrier, receive, barrier.
 * argv[1]: steps (default 2), every other one sends. */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 2, left = (rank + size - 1) % size, right = (rank + 1) % size;
    int out = rank * 7 + 1, *in = calloc((size_t)steps + 1, sizeof *in);
    MPI_Request *requests = calloc((size_t)steps + 1, sizeof *requests);
    for (int i = 0; i < steps; i++) { /* time step */
        MPI_Barrier(MPI_COMM_WORLD);
        if (i % 2 == 0)
            MPI_Isend(&out, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[i]);
        if (i % 2 == 1)
            MPI_Irecv(&in[i], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (steps % 2 == 1)
        MPI_Irecv(&in[steps], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[steps]);
    MPI_Waitall(steps + steps % 2, requests, MPI_STATUSES_IGNORE);
    see(in, steps + 1);
    free(requests);
    free(in);
    finish("loop_figure1");
}
