/* A 9-point stencil in two dimensions: eight neighbours, fewer at the sides and corners. argv[1]: steps (default 10). */
#include "grid.h"

enum { N = 12 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, out[N], in[8][N];
    struct grid grid = grid_of(2);
    struct neighbour near[8];
    int neighbours = touching(&grid, near);
    memset(in, 0, sizeof in);
    for (int step = 0; step < steps; step++) { /* time step */
        MPI_Request requests[16];
        for (int i = 0; i < N; i++)
            out[i] = rank * 23 + step * 5 + i;
        for (int n = 0; n < neighbours; n++)
            MPI_Irecv(in[n], near[n].axes == 1 ? N : 1, MPI_INT, near[n].rank, near[n].back, MPI_COMM_WORLD,
                      &requests[n]);
        for (int n = 0; n < neighbours; n++)
            MPI_Isend(out, near[n].axes == 1 ? N : 1, MPI_INT, near[n].rank, near[n].there, MPI_COMM_WORLD,
                      &requests[neighbours + n]);
        MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
        for (int n = 0; n < neighbours; n++)
            see(in[n], N);
    }
    finish("stencil2d9");
}
