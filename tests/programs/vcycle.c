/* Multigrid whose step makes no call of its own: all calls are in functions, and each of them hangs on a condition.
 * Ranks are on a ring. A coarser grid leaves out every other one of them, which then has nothing to do, but for the
 * finest grid that all of them hold. argv[1]: steps (default 4), argv[2]: levels (default 5). */
#include "common.h"

enum { N = 32, AXES = 3 };

static int levels, out[N], in[2][N], had[2][N];

/* This rank has no part of the grid. */
static int idle(int level)
{
    return rank % (1 << level) != 0;
}

/* The next one on the ring that has. */
static int beside(int level, int side)
{
    int step = 1 << level, last = (size - 1) / step * step;
    if (side == 0)
        return rank == 0 ? last : rank - step;
    return rank == last ? 0 : rank + step;
}

static void ready(int level, int side, MPI_Request *request)
{
    MPI_Irecv(in[side], N >> level, MPI_INT, beside(level, side), 1 - side, MPI_COMM_WORLD, request);
}

static void give(int level, int side)
{
    for (int i = 0; i < N >> level; i++)
        out[i] = (had[side][i] + rank * 3 + level * 7 + i) % 9973;
    MPI_Send(out, N >> level, MPI_INT, beside(level, side), side, MPI_COMM_WORLD);
}

static void take(int level, int side, MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    see(in[side], N >> level);
    memcpy(had[side], in[side], sizeof had[side]);
}

OWN_FRAME static void exchange(int level)
{
    if (size > 1 && !idle(level) && beside(level, 0) != rank)
        for (int axis = 0; axis < AXES; axis++) { /* axes */
            MPI_Request requests[2];
            ready(level, 0, &requests[0]);
            ready(level, 1, &requests[1]);
            give(level, 0);
            give(level, 1);
            take(level, 0, &requests[0]);
            take(level, 1, &requests[1]);
        }
    see(&level, 1);
}

OWN_FRAME static void restricted(int level)
{
    exchange(level);
    see(&level, 1);
}

OWN_FRAME static void smooth(int level)
{
    exchange(level);
    see(in[0], 2);
}

OWN_FRAME static void residual(int level)
{
    exchange(level);
    see(in[1], 3);
}

OWN_FRAME static void cycle(void)
{
    for (int level = 1; level < levels; level++) /* down */
        restricted(level);
    smooth(levels - 1);
    for (int level = levels - 2; level >= 0; level--) { /* up */
        residual(level);
        smooth(level);
    }
    see(&levels, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 4;
    levels = argc > 2 ? atoi(argv[2]) : 5;
    residual(0);
    for (int step = 0; step < steps; step++) { /* time step */
        cycle();
        residual(0);
    }
    finish("vcycle");
}
