/* Both neighbours of a ring get a message of another random size in every step.
 * argv[1]: steps (default 20); argv[2]: most integers in a message (default 1000). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 20, most = argc > 2 ? atoi(argv[2]) : 1000;
    int peers[2] = {(rank + size - 1) % size, (rank + 1) % size};
    int *out = calloc((size_t)most, sizeof *out), *in = calloc(2 * (size_t)most, sizeof *in);
    for (int i = 0; i < most; i++)
        out[i] = rank * 7 + i;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[4];
        MPI_Status statuses[4];
        memset(statuses, 0, sizeof statuses);
        for (int side = 0; side < 2; side++)
            MPI_Irecv(in + side * most, most, MPI_INT, peers[side], side, MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 2; side++)
            MPI_Isend(out, 1 + drawn(most, step, rank, side), MPI_INT, peers[side], 1 - side, MPI_COMM_WORLD,
                      &requests[2 + side]);
        MPI_Waitall(4, requests, statuses);
        for (int side = 0; side < 2; side++) {
            int count;
            MPI_Get_count(&statuses[side], MPI_INT, &count);
            see(in + side * most, count);
        }
    }
    free(in);
    free(out);
    finish("random_sizes");
}
