/* The 27-point stencil with a recursion where others have a loop: every step is a call deeper than the one before.
 * argv[1]: steps (default 10). */
#include "grid.h"

enum { N = 6 };

/* One step at a time uses these, so their addresses do not tell how deep it is. */
static int neighbours, out[N * N], in[26][N * N];
static struct neighbour near[26];
static MPI_Request requests[52];

OWN_FRAME static void advance(int step, int steps)
{
    static const int counts[4] = {0, N * N, N, 1};
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
    if (step + 1 < steps)
        advance(step + 1, steps); /* time step */
    see(&step, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    struct grid grid = grid_of(3);
    neighbours = touching(&grid, near);
    if (steps > 0)
        advance(0, steps);
    finish("stencil3d_recursive");
}
