/* MILC su3_rmd: quarks on a 4-D torus. A gather fetches the sites that the neighbour along one of 8 directions has, of one parity;
 * a conjugate gradient of as many iterations as the data need applies the operator four times each and sums twice. Between two of
 * them the links are gathered for the force. Weak: 16x16x16x32 sites a rank; strong: 64x64x64x32 in all. Pilgrim figure 9.
 * Ranks: any; for strong a power of two up to 2^20. argv[1]: steps; argv[2]: weak (default) or strong. */
#include "papers.h"
#include <string.h>

enum { X, Y, Z, T, AXES };

static int sites[AXES] = {16, 16, 16, 32};
static struct grid grid;

static int is_strong(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[2], "strong") == 0;
}

/* The lattice is cut in two along its longest side until there is a part for each rank. */
static void cut_lattice(void)
{
    int whole[AXES] = {64, 64, 64, 32}, left = rank;
    grid = (struct grid){.dimensions = AXES, .periodic = 1, .extent = {1, 1, 1, 1}};
    memcpy(sites, whole, sizeof sites);
    for (int parts = 1; parts < size; parts *= 2) {
        int longest = X;
        for (int axis = Y; axis < AXES; axis++)
            if (sites[axis] > sites[longest])
                longest = axis;
        sites[longest] /= 2;
        grid.extent[longest] *= 2;
    }
    for (int axis = T; axis >= X; left /= grid.extent[axis--])
        grid.at[axis] = left % grid.extent[axis];
}

/* Sites of one parity next to the neighbour along the axis. */
static int boundary(int axis)
{
    int all = 1;
    for (int other = X; other < AXES; other++)
        if (other != axis)
            all *= sites[other];
    return all / 2;
}

static void start_gather(int direction, int numbers)
{
    int axis = direction % AXES, by = direction < AXES ? 1 : -1, count = boundary(axis) * numbers;
    if (grid.extent[axis] == 1)
        return;
    start_receive(count, along(&grid, axis, by), direction);
    start_send(count, along(&grid, axis, -by), direction);
}

/* A product of a 3x3 matrix and a vector, both complex, takes 66 operations, the sum of two vectors 6: eight and seven of them
 * for each site of one parity. */
static const double A_SITE = 8 * 66 + 7 * 6;

/* The operator on the sites of one parity: forwards, then backwards. */
static void apply(void)
{
    for (int direction = 0; direction < 2 * AXES; direction++)
        start_gather(direction, 3);
    wait_each();
    compute(0.5 * sites[X] * sites[Y] * sites[Z] * sites[T], A_SITE);
}

static void solve(int step)
{
    int iterations = 10 + (int)(mixed(step, 0, 1) % 6);
    for (int iteration = 0; iteration < iterations; iteration++) {
        for (int application = 0; application < 4; application++)
            apply();
        sum_all(1);
        sum_all(1);
    }
}

static void gather_links(void)
{
    for (int axis = X; axis < AXES; axis++)
        for (int other = X; other < AXES; other++)
            if (other != axis) {
                start_gather(other, 18);
                wait_each();
            }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (is_strong(argc, argv)) {
        need(is_power_of_two(size) && size <= 1 << 20, "a power of two");
        cut_lattice();
    } else {
        grid = grid_of(AXES, 1);
    }
    for (int setting = 0; setting < 6; setting++)
        broadcast(8);
    for (int step = 0; step < steps; step++) {
        gather_links();
        solve(step);
        sum_all(2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    finish();
}
