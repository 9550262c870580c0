/* Ranks on a grid, with a communicator for each row and each column. argv[1]: steps (default 10). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, columns = 1, out[12], in[12];
    for (int i = 1; i * i <= size; i++)
        if (size % i == 0)
            columns = i;
    int rows = size / columns, row = rank / columns, column = rank % columns;
    MPI_Comm along, across;
    MPI_Comm_split(MPI_COMM_WORLD, row, column, &along);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &across);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 12; i++)
            out[i] = rank * 3 + step + i;
        MPI_Allreduce(out, in, 12, MPI_INT, MPI_SUM, along);
        see(in, 12);
        MPI_Bcast(out, 12, MPI_INT, step % rows, across);
        see(out, 12);
        MPI_Reduce(out, in, 12, MPI_INT, MPI_MAX, 0, along);
        if (column == 0)
            see(in, 12);
    }
    MPI_Comm_free(&along);
    MPI_Comm_free(&across);
    finish("rowcol");
}
