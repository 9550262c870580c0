/* A 7-point stencil on a periodic grid of processes.
 * argv[1]: steps (default 10); argv[2]: "cart" to let MPI work the neighbours out, otherwise they are worked out here. */
#include "common.h"

enum { N = 64 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, cart = argc > 2 && strcmp(argv[2], "cart") == 0;
    int dims[3] = {0, 0, 0}, periods[3] = {1, 1, 1}, coords[3], peers[6], stride = size, me = rank;
    int out[6][N], in[6][N];
    MPI_Comm grid = MPI_COMM_WORLD;
    MPI_Dims_create(size, 3, dims);
    if (cart) {
        MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
        MPI_Comm_rank(grid, &me);
        MPI_Cart_coords(grid, me, 3, coords);
    }
    for (int d = 0; d < 3; d++) {
        stride /= dims[d];
        int at = me / stride % dims[d];
        if (cart)
            MPI_Cart_shift(grid, d, 1, &peers[2 * d], &peers[2 * d + 1]);
        else {
            peers[2 * d] = me + ((at + dims[d] - 1) % dims[d] - at) * stride;
            peers[2 * d + 1] = me + ((at + 1) % dims[d] - at) * stride;
        }
    }
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[12];
        int most, mine = rank * 31 + step;
        for (int side = 0; side < 6; side++)
            for (int i = 0; i < N; i++)
                out[side][i] = rank * 100 + step * 10 + side + i;
        for (int side = 0; side < 6; side++)
            MPI_Irecv(in[side], N, MPI_INT, peers[side], side ^ 1, grid, &requests[side]);
        for (int side = 0; side < 6; side++)
            MPI_Isend(out[side], N, MPI_INT, peers[side], side, grid, &requests[6 + side]);
        MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 6; side++)
            see(in[side], N);
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, grid);
        see(&most, 1);
    }
    if (cart)
        MPI_Comm_free(&grid);
    finish("stencil3d");
}
