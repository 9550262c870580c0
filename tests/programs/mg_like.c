/* Multigrid: from the finest grid to the coarsest and back in every step. The first grids are spread over all ranks;
 * each coarser one leaves out every other rank along each axis, which hands its part to the one before it and gets it
 * back on the way up, until one holds it all. Exchanges go around the ends. argv[1]: steps (default 10). */
#include "grid.h"

enum { N = 64, SPREAD = 2 };

static struct grid grid;
static int out[N], in[6][N];

/* How far apart the ranks are that hold this level: 1 where all do. */
static int apart(int level)
{
    return level < SPREAD ? 1 : 1 << (level - SPREAD + 1);
}

static int takes_part(int level)
{
    for (int axis = 0; axis < 3; axis++)
        if (grid.at[axis] % apart(level) != 0)
            return 0;
    return 1;
}

/* Who holds the part of this rank at that level. */
static int holder(int level)
{
    int at[3];
    for (int axis = 0; axis < 3; axis++)
        at[axis] = grid.at[axis] - grid.at[axis] % apart(level);
    return rank_at(&grid, at);
}

/* The next one that holds this level, back or forward along an axis. */
static int beside(int side, int level)
{
    int at[3] = {grid.at[0], grid.at[1], grid.at[2]}, axis = side / 2, step = apart(level);
    int last = (grid.extent[axis] - 1) / step * step;
    if (side % 2 == 0)
        at[axis] = at[axis] == 0 ? last : at[axis] - step;
    else
        at[axis] = at[axis] == last ? 0 : at[axis] + step;
    return rank_at(&grid, at);
}

OWN_FRAME static void exchange(int level)
{
    int count = N >> level > 1 ? N >> level : 1, pending = 0;
    MPI_Request requests[6];
    for (int i = 0; i < count; i++)
        out[i] = (in[0][i] + rank * 3 + level * 7 + i) % 9973;
    for (int side = 0; side < 6; side++)
        if (beside(side, level) != rank)
            MPI_Irecv(in[side], count, MPI_INT, beside(side, level), side ^ 1, MPI_COMM_WORLD, &requests[pending++]);
    for (int side = 0; side < 6; side++)
        if (beside(side, level) != rank)
            MPI_Send(out, count, MPI_INT, beside(side, level), side, MPI_COMM_WORLD);
    for (int i = 0; i < pending; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int side = 0; side < 6; side++)
        see(in[side], count);
}

/* Between a level's holders and those of the next coarser one: to fewer ranks, or back to more. */
OWN_FRAME static void hand_over(int level, int gather)
{
    if (apart(level + 1) == apart(level) || !takes_part(level))
        return;
    if (!takes_part(level + 1)) {
        if (gather)
            MPI_Send(out, 1, MPI_INT, holder(level + 1), 6, MPI_COMM_WORLD);
        else
            MPI_Recv(in[0], 1, MPI_INT, holder(level + 1), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        for (int part = 1; part < 8; part++) {
            int at[3];
            for (int axis = 0; axis < 3; axis++)
                at[axis] = grid.at[axis] + (part >> axis & 1) * apart(level);
            int other = rank_at(&grid, at);
            if (other == MPI_PROC_NULL)
                continue;
            if (gather)
                MPI_Recv(in[0], 1, MPI_INT, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Send(out, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
            see(in[0], 1);
        }
    }
    see(&level, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, levels = SPREAD, longest = 1;
    grid = grid_of(3);
    for (int axis = 0; axis < 3; axis++)
        longest = grid.extent[axis] > longest ? grid.extent[axis] : longest;
    while (apart(levels - 1) < longest)
        levels++;
    for (int step = 0; step < steps; step++) { /* time step */
        int mine, most;
        for (int level = 0; level < levels; level++) {
            if (takes_part(level))
                exchange(level);
            if (level + 1 < levels)
                hand_over(level, 1);
        }
        for (int level = levels - 2; level >= 0; level--) {
            hand_over(level, 0);
            if (takes_part(level))
                exchange(level);
        }
        mine = in[0][0];
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        see(&most, 1);
    }
    finish("mg_like");
}
