/* Sweep3D: neutrons from each of 8 corners of a cube through a 2-D grid of ranks. In every octant the work is cut into blocks of
 * angles and planes; for each block a rank waits for both neighbours upstream and goes on to both downstream. Then the error is
 * summed. ScalaTrace II figure 7. Ranks: any. argv[1]: steps. */
#include "papers.h"

enum { LINE = 200, ANGLES = 2, BLOCKS = 10, DEEP = 6 };

/* Six angles an octant are two blocks of three. A cell takes about 30 operations an angle, without fixups. */
static const double A_CELL = 3 * 30;

static struct grid grid;

static void sweep(int down, int right)
{
    int width = DEEP * share(LINE, grid.extent[1], grid.at[1]), height = DEEP * share(LINE, grid.extent[0], grid.at[0]);
    int above = along(&grid, 0, -down), below = along(&grid, 0, down);
    int left = along(&grid, 1, -right), next = along(&grid, 1, right);
    for (int block = 0; block < ANGLES * BLOCKS; block++) {
        if (left >= 0)
            receive(height, left, 1);
        if (above >= 0)
            receive(width, above, 2);
        compute((double)width * height / DEEP, A_CELL);
        if (next >= 0)
            send(height, next, 1);
        if (below >= 0)
            send(width, below, 2);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    grid = grid_of(2, 0);
    broadcast(20);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        for (int octant = 0; octant < 8; octant++)
            sweep(octant & 2 ? 1 : -1, octant & 1 ? 1 : -1);
        sum_all(1);
    }
    for (int total = 0; total < 3; total++)
        sum_all(1);
    MPI_Barrier(MPI_COMM_WORLD);
    finish();
}
