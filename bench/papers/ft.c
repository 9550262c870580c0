/* NPB FT: a 3-D Fourier transform. Each step transposes the array by an all-to-all, over all ranks, or along rows and then
 * columns of ranks where there are more ranks than planes, and sums a checksum at rank 0.
 * ScalaTrace figure 10. Ranks: a power of two. argv[1]: steps. */
#include "papers.h"

enum { PLANES = 256, POINTS = 1 << 18 };

/* Class A takes 5.631e9 operations for 6 steps of 2^23 points. */
static const double A_POINT = 5.631e9 / 6 / (1 << 23);

static void transpose(MPI_Comm comm, int members)
{
    int count = POINTS / size / members > 1 ? POINTS / size / members : 1;
    MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, comm);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    need(is_power_of_two(size), "a power of two");
    int rows = 1;
    if (size > PLANES)
        while (rows * rows * 4 <= size)
            rows *= 2;
    int columns = size / rows;
    MPI_Comm row, column;
    broadcast(3);
    broadcast(1);
    MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank % columns, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % columns, rank / columns, &column);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        compute((double)POINTS / size, A_POINT);
        transpose(row, columns);
        if (rows > 1)
            transpose(column, rows);
        sum_at_root(2);
        broadcast(1);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    finish();
}
