/* A 27-point stencil in three dimensions: up to 26 neighbours, across faces, edges and corners.
 * argv[1]: steps (default 10). */
#include "grid.h"

enum { N = 6 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, counts[4] = {0, N * N, N, 1}, out[N * N], in[26][N * N];
    struct grid grid = grid_of(3);
    struct neighbour near[26];
    int neighbours = touching(&grid, near);
    memset(in, 0, sizeof in);
    for (int step = 0; step < steps; step++) { /* time step */
        MPI_Request requests[52];
        for (int i = 0; i < N * N; i++)
            out[i] = rank * 29 + step * 7 + i;
        for (int n = 0; n < neighbours; n++)
            MPI_Irecv(in[n], counts[near[n].axes], MPI_INT, near[n].rank, near[n].back, MPI_COMM_WORLD, &requests[n]);
        for (int n = 0; n < neighbours; n++)
            MPI_Isend(out, counts[near[n].axes], MPI_INT, near[n].rank, near[n].there, MPI_COMM_WORLD,
                      &requests[neighbours + n]);
        MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
        for (int n = 0; n < neighbours; n++)
            see(in[n], N * N);
    }
    finish("stencil3d27");
}
