/* The same exchange written once for each axis, as solvers are that go along one axis after the other: functions that
 * differ in nothing but their place in the program. The grid of ranks wraps around. argv[1]: steps (default 10). */
#include "grid.h"

enum { N = 10 };

static struct grid grid;
static int out[N], in[N];

/* So far along the axis, around the end of it. */
static int beside(int axis, int away)
{
    int at[2] = {grid.at[0], grid.at[1]}, extent = grid.extent[axis];
    at[axis] = (at[axis] + away + extent) % extent;
    return rank_at(&grid, at);
}

OWN_FRAME static void solve_x(int step)
{
    MPI_Request requests[2];
    for (int i = 0; i < N; i++)
        out[i] = rank + step * 3 + i;
    MPI_Isend(out, N, MPI_INT, beside(0, 1), 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, N, MPI_INT, beside(0, -1), 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    see(in, N);
}

OWN_FRAME static void solve_y(int step)
{
    MPI_Request requests[2];
    for (int i = 0; i < N; i++)
        out[i] = rank + step * 5 + i;
    MPI_Isend(out, N, MPI_INT, beside(1, 1), 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, N, MPI_INT, beside(1, -1), 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    see(in, N);
}

OWN_FRAME static void simulate(int steps)
{
    for (int step = 0; step < steps; step++) { /* time step */
        solve_x(step);
        solve_y(step);
    }
    see(&steps, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    grid = grid_of(2);
    simulate(argc > 1 ? atoi(argv[1]) : 10);
    finish("bt_sites");
}
