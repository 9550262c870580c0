/* Ranks on a square grid exchange with the one on the other side of the diagonal; ranks beyond the largest square only
 * take part in the barrier. argv[1]: steps (default 10). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, side = 1, out[32], in[32];
    while ((side + 1) * (side + 1) <= size)
        side++;
    int row = rank / side, column = rank % side;
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 32; i++)
            out[i] = rank * 7 + step + i;
        if (row < side && row != column) {
            int partner = column * side + row;
            MPI_Sendrecv(out, 32, MPI_INT, partner, 13, in, 32, MPI_INT, partner, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            see(in, 32);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    finish("transpose");
}
