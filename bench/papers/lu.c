/* NPB LU: two wavefronts over a 2-D grid of ranks. In each of the planes of the lower sweep a rank waits for north and west and
 * goes on to south and east; the upper sweep comes back. Then faces are exchanged, one direction after the other.
 * Pilgrim figure 5, ScalaTrace figure 10, ScalaTrace II figure 7. Ranks: a power of two. argv[1]: steps. */
#include "papers.h"

enum { GRID = 162, PLANES = 20 };

/* Class A takes 64.57e9 operations for 250 steps of 64^3 points: two fifths for each sweep, one for the right-hand side. */
static const double A_POINT = 64.57e9 / 250 / (64 * 64 * 64);

static int rows, columns, north = -1, south = -1, west = -1, east = -1, width, height;

static void place(void)
{
    for (rows = 1; rows * rows * 4 <= size; rows *= 2)
        ;
    columns = size / rows;
    int row = rank % rows, column = rank / rows;
    if (row > 0)
        north = rank - 1;
    if (row < rows - 1)
        south = rank + 1;
    if (column > 0)
        west = rank - rows;
    if (column < columns - 1)
        east = rank + rows;
    height = share(GRID, rows, row);
    width = share(GRID, columns, column);
}

static void sweep(int from_a, int from_b, int to_a, int to_b, int tag)
{
    for (int plane = 0; plane < PLANES; plane++) {
        if (from_a >= 0)
            receive(5 * width, from_a, tag);
        if (from_b >= 0)
            receive(5 * height, from_b, tag + 1);
        compute((double)width * height, 0.4 * A_POINT);
        if (to_a >= 0)
            send(5 * width, to_a, tag);
        if (to_b >= 0)
            send(5 * height, to_b, tag + 1);
    }
}

static void shift(int from, int to, int count, int tag)
{
    if (from >= 0)
        start_receive(count, from, tag);
    if (to >= 0)
        send(count, to, tag);
    wait_each();
}

static void exchange_faces(void)
{
    shift(north, south, 10 * width * PLANES, 5);
    shift(south, north, 10 * width * PLANES, 6);
    shift(west, east, 10 * height * PLANES, 7);
    shift(east, west, 10 * height * PLANES, 8);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    need(is_power_of_two(size), "a power of two");
    place();
    for (int setting = 0; setting < 5; setting++)
        broadcast(1);
    exchange_faces();
    sum_all(5);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        sweep(north, west, south, east, 1);
        sweep(south, east, north, west, 3);
        exchange_faces();
        compute((double)width * height * PLANES, 0.2 * A_POINT);
    }
    sum_all(5);
    sum_all(1);
    finish();
}
