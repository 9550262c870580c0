/* NPB CG: a sparse matrix on rows by columns of ranks. Each of 25 iterations of the solver sums a vector over the columns of its
 * row, partner by partner, swaps it with the transposed rank, and takes two dot products the same way, all point to point.
 * Pilgrim figure 5, ScalaTrace figure 10, ScalaTrace II figure 7. Ranks: a power of two. argv[1]: steps. */
#include "papers.h"

enum { LENGTH = 14000, ITERATIONS = 25 };

/* Class A takes 1.508e9 operations for 15 steps of 26 products with its matrix. */
static const double A_PRODUCT = 1.508e9 / 15 / 26;

static int rows, columns, transposed;

/* The share of the vector that the column of this rank has. */
static int columns_of(int other)
{
    return share(LENGTH, columns, other % columns);
}

/* With the rank half a group away, then with that of half the group, and so on. */
static void sum_row(int count)
{
    int row = rank / columns, column = rank % columns;
    for (int group = columns; group > 1; group /= 2) {
        int partner = row * columns + (column % group + group / 2) % group + column / group * group;
        start_receive(count, partner, 1);
        send(count, partner, 1);
        wait_each();
    }
}

static void swap(void)
{
    if (columns == 1)
        return;
    start_receive(columns_of(rank), transposed, 2);
    send(columns_of(transposed), transposed, 2);
    wait_each();
}

static void multiply(void)
{
    compute((double)LENGTH / size, A_PRODUCT / LENGTH);
    sum_row(share(LENGTH, rows, rank / columns));
    swap();
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    need(is_power_of_two(size), "a power of two");
    for (rows = 1; rows * rows * 4 <= size; rows *= 2)
        ;
    columns = size / rows;
    int half = rank / (columns / rows);
    transposed = columns / rows * (half % rows * rows + half / rows) + rank % (columns / rows);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        sum_row(1);
        for (int iteration = 0; iteration < ITERATIONS; iteration++) {
            multiply();
            sum_row(1);
            sum_row(1);
        }
        multiply();
        sum_row(1);
        sum_row(2);
    }
    sum_at_root(1);
    finish();
}
