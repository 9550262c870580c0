/* UMT2k: photons through an unstructured mesh. The parts of a partitioned mesh touch in no regular way: a rank has as many
 * neighbours as its part has, and surfaces of all sizes. For each direction of flight a rank waits for those upstream, in any order
 * (MPI_Waitsome), and goes on to those downstream. ScalaTrace figure 10. Ranks: any. argv[1]: steps. */
#include "waitsome.h"

enum { OCTANTS = 8 };

static struct grid grid;
static int neighbours, others[26], ways[26];

static void find_neighbours(void)
{
    for (int direction = 0; direction < 27; direction++) {
        int by[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
        int other = direction == 13 ? -1 : neighbour(&grid, by);
        int low = other < rank ? other : rank, high = other < rank ? rank : other;
        if (other >= 0 && mixed(low, high, 5) % 8 < 5) {
            others[neighbours] = other;
            ways[neighbours++] = direction;
        }
    }
}

/* Whether photons of this octant fly towards that direction. */
static int is_downstream(int direction, int octant)
{
    int by[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1}, sum = 0;
    for (int axis = 0; axis < 3; axis++)
        sum += (octant >> axis & 1 ? by[axis] : -by[axis]) * (4 - axis);
    return sum > 0 || (sum == 0 && direction > 13);
}

static int surface(int other, int octant)
{
    int low = other < rank ? other : rank, high = other < rank ? rank : other;
    return 10 + (int)(mixed(low, high, octant) % 400);
}

static void fly(int octant)
{
    for (int n = 0; n < neighbours; n++)
        if (!is_downstream(ways[n], octant))
            start_receive(surface(others[n], octant), others[n], octant);
    wait_some();
    for (int n = 0; n < neighbours; n++)
        if (is_downstream(ways[n], octant))
            start_send(surface(others[n], octant), others[n], octant);
    wait_all();
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    grid = grid_of(3, 0);
    find_neighbours();
    for (int setting = 0; setting < 5; setting++)
        broadcast(20);
    for (int step = 0; step < steps; step++) {
        for (int octant = 0; octant < OCTANTS; octant++)
            fly(octant);
        sum_all(1);
        sum_all(3);
    }
    finish();
}
