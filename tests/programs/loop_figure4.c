/* Pairs of ranks that do the same in loops of different shapes: the even one sends and receives five times in a loop
 * and once after it, and waits for all twelve at the end; the odd one does it six times and waits every time.
 * A rank without a partner does nothing. argv[1]: how often the even one's loop runs (default 5). */
#include "common.h"

/* Both kinds of ranks wait at one call, from two places. */
OWN_FRAME static void wait_for(int count, MPI_Request *requests)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    see(&count, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 5, partner = rank ^ 1, even = rank % 2 == 0;
    volatile int odd = !even; /* a compiler that knew would make a loop for each kind */
    int trips = partner >= size ? 0 : even ? steps : steps + 1, out = rank * 13 + 2;
    int *in = calloc((size_t)steps + 1, sizeof *in);
    MPI_Request *requests = calloc(2 * (size_t)steps + 2, sizeof *requests);
    for (int i = 0; i < trips; i++) { /* time step */
        MPI_Request *two = even ? &requests[2 * i] : requests;
        MPI_Isend(&out, 1, MPI_INT, partner, 0, MPI_COMM_WORLD, &two[0]);
        MPI_Irecv(&in[i], 1, MPI_INT, partner, 0, MPI_COMM_WORLD, &two[1]);
        if (odd)
            wait_for(2, two);
    }
    if (even && partner < size) {
        MPI_Isend(&out, 1, MPI_INT, partner, 0, MPI_COMM_WORLD, &requests[2 * steps]);
        MPI_Irecv(&in[steps], 1, MPI_INT, partner, 0, MPI_COMM_WORLD, &requests[2 * steps + 1]);
        wait_for(2 * steps + 2, requests);
    }
    see(in, steps + 1);
    free(requests);
    free(in);
    finish("loop_figure4");
}
