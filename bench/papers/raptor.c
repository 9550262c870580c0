/* Raptor: a Godunov solver for shock waves on blocks of a 3-D mesh. Each step exchanges with all 26 ranks that touch, twice: once
 * for each half of the method. Receives complete in any order (MPI_Waitsome). Then the time step is agreed on. ScalaTrace
 * figure 10. Ranks: any. argv[1]: steps. */
#include "waitsome.h"

enum { SIDE = 24 };

static struct grid grid;

/* The rank so many steps away, or -1; how many numbers it gets. */
static int touching(int direction, int *count)
{
    int by[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
    *count = 1;
    for (int axis = 0; axis < 3; axis++)
        *count *= by[axis] == 0 ? SIDE : 2;
    return direction == 13 ? -1 : neighbour(&grid, by);
}

static void exchange(int phase)
{
    MPI_Request sent[26];
    int count, messages = 0;
    for (int direction = 0; direction < 27; direction++) {
        int other = touching(direction, &count);
        if (other >= 0)
            start_receive(count, other, 100 * phase + 26 - direction);
    }
    for (int direction = 0; direction < 27; direction++) {
        int other = touching(direction, &count);
        if (other >= 0)
            MPI_Isend(out, count, MPI_DOUBLE, other, 100 * phase + direction, MPI_COMM_WORLD, &sent[messages++]);
    }
    wait_some();
    MPI_Waitall(messages, sent, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    grid = grid_of(3, 0);
    broadcast(10);
    for (int step = 0; step < steps; step++) {
        exchange(1);
        exchange(2);
        MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    }
    finish();
}
