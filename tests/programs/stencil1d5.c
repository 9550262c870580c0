/* A 5-point stencil in one dimension: two neighbours on either side, where there are any. argv[1]: steps (default 10). */
#include "common.h"

enum { N = 16 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, away[4] = {-2, -1, 1, 2}, out[N], in[4][N];
    memset(in, 0, sizeof in);
    for (int step = 0; step < steps; step++) { /* time step */
        MPI_Request requests[8];
        int pending = 0;
        for (int i = 0; i < N; i++)
            out[i] = rank * 19 + step * 3 + i;
        for (int side = 0; side < 4; side++)
            if (rank + away[side] >= 0 && rank + away[side] < size)
                MPI_Irecv(in[side], N, MPI_INT, rank + away[side], 3 - side, MPI_COMM_WORLD, &requests[pending++]);
        for (int side = 0; side < 4; side++)
            if (rank + away[side] >= 0 && rank + away[side] < size)
                MPI_Isend(out, N, MPI_INT, rank + away[side], side, MPI_COMM_WORLD, &requests[pending++]);
        MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 4; side++)
            see(in[side], N);
    }
    finish("stencil1d5");
}
