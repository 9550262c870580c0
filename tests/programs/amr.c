/* As in adaptive mesh refinement: who talks to whom, and about how much, changes when the load is balanced anew; then
 * there are also a new communicator for each level and a new type for each patch size.
 * argv[1]: steps (default 20); argv[2]: steps between two rebalancings (default 5). */
#include "common.h"

enum { ROWS = 8, WIDTH = 12 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 20, every = argc > 2 ? atoi(argv[2]) : 5;
    int *peers = calloc((size_t)size, sizeof *peers), *lengths = calloc((size_t)size, sizeof *lengths);
    int *in = calloc((size_t)size * 64, sizeof *in), patch[ROWS * WIDTH], out[64], neighbours = 0;
    MPI_Request *requests = calloc(2 * (size_t)size, sizeof *requests);
    MPI_Comm level = MPI_COMM_NULL;
    MPI_Datatype column = MPI_DATATYPE_NULL;
    for (int i = 0; i < ROWS * WIDTH; i++)
        patch[i] = rank * 5 + i;
    for (int i = 0; i < 64; i++)
        out[i] = rank * 3 + i;
    for (int step = 0; step < steps; step++) { /* time step */
        int balance = step / every;
        if (step % every == 0) {
            if (level != MPI_COMM_NULL) {
                MPI_Comm_free(&level);
                MPI_Type_free(&column);
            }
            MPI_Comm_split(MPI_COMM_WORLD, drawn(2, balance, rank, 1), rank, &level);
            MPI_Type_vector(ROWS, 1 + drawn(3, balance, rank, 2), WIDTH, MPI_INT, &column);
            MPI_Type_commit(&column);
            neighbours = 0;
            for (int other = 0; other < size; other++) {
                int low = other < rank ? other : rank, high = other < rank ? rank : other;
                if (low != high && (high == low + 1 || drawn(4, balance, low, high) == 0)) {
                    lengths[neighbours] = 4 + drawn(60, balance, low, high + 1000);
                    peers[neighbours++] = other;
                }
            }
        }
        for (int i = 0; i < neighbours; i++)
            MPI_Irecv(in + i * 64, 64, MPI_INT, peers[i], 3, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < neighbours; i++)
            MPI_Isend(out, lengths[i], MPI_INT, peers[i], 3, MPI_COMM_WORLD, &requests[neighbours + i]);
        MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < neighbours; i++)
            see(in + i * 64, lengths[i]);
        MPI_Sendrecv(patch, 1, column, rank, 9, in, 64, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        see(in, ROWS);
        int mine = rank + step, most;
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, level);
        see(&most, 1);
    }
    MPI_Comm_free(&level);
    MPI_Type_free(&column);
    free(requests);
    free(in);
    free(lengths);
    free(peers);
    finish("amr");
}
