/* NPB MG: V-cycles over grids of 2 to 2^LEVELS points an axis on a 3-D torus of ranks. Where a grid has fewer points than ranks
 * along an axis, only every second, fourth ... rank has part of it and the others are idle; on the way up they get theirs from both
 * sides, axis by axis. ScalaTrace figure 10, ScalaTrace II figure 7. Ranks: a power of two. argv[1]: steps. */
#include "papers.h"

enum { LEVELS = 8 };

/* Class A takes 3.905e9 operations for 4 cycles over 256^3 points, seven eighths of them on the finest grid: a cycle goes over
 * each grid four times. */
static const double A_POINT = 3.905e9 / 4 / (256 * 256 * 256) * 7 / 8 / 4;

static struct grid grid;

/* How far apart the ranks are that hold this level. */
static int apart(int axis, int level)
{
    int ranks = grid.extent[axis] >> level;
    return ranks > 1 ? ranks : 1;
}

static int holds(int axis, int level)
{
    return grid.at[axis] % apart(axis, level) == 0;
}

static int side(int axis, int level)
{
    int points = (1 << level) / grid.extent[axis];
    return (points > 1 ? points : 1) + 2;
}

static int face(int axis, int level)
{
    return side((axis + 1) % 3, level) * side((axis + 2) % 3, level);
}

static void halo(int level)
{
    if (!holds(0, level) || !holds(1, level) || !holds(2, level))
        return;
    compute((double)side(0, level) * side(1, level) * side(2, level), A_POINT);
    for (int axis = 0; axis < 3; axis++) {
        int away = apart(axis, level), count = face(axis, level);
        if (away == grid.extent[axis])
            continue;
        int left = along(&grid, axis, -away), right = along(&grid, axis, away);
        start_receive(count, left, 2 * axis);
        start_receive(count, right, 2 * axis + 1);
        send(count, right, 2 * axis);
        send(count, left, 2 * axis + 1);
        wait_each();
    }
}

/* From the ranks of the level below to those of this one that it left out. */
static void extend(int level)
{
    for (int axis = 0; axis < 3; axis++) {
        int away = apart(axis, level), count = face(axis, level), there = holds(axis, level);
        for (int other = 0; other < 3; other++)
            if (other != axis)
                there = there && holds(other, other < axis ? level : level - 1);
        if (!there || away == apart(axis, level - 1))
            continue;
        int left = along(&grid, axis, -away), right = along(&grid, axis, away);
        if (holds(axis, level - 1)) {
            send(count, right, 6);
            send(count, left, 7);
        } else {
            start_receive(count, left, 6);
            start_receive(count, right, 7);
            wait_each();
        }
    }
}

static void cycle(void)
{
    for (int level = LEVELS - 1; level >= 1; level--)
        halo(level);
    halo(1);
    for (int level = 2; level <= LEVELS; level++) {
        extend(level);
        halo(level);
        halo(level);
    }
    halo(LEVELS);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    need(is_power_of_two(size), "a power of two");
    grid = grid_of(3, 1);
    for (int setting = 0; setting < 4; setting++)
        broadcast(1);
    halo(LEVELS);
    sum_all(1);
    sum_all(1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++)
        cycle();
    sum_all(1);
    sum_all(1);
    sum_at_root(1);
    finish();
}
