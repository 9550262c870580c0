/* Exchanges along the edges of a hypercube: with rank xor 2^k, for all k. Any number of ranks; who has no partner waits
 * for the next round. argv[1]: steps (default 10). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, out[16], in[16];
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 16; i++)
            out[i] = rank + step + i;
        for (int bit = 1; bit < size; bit *= 2) {
            int partner = rank ^ bit;
            if (partner >= size)
                continue;
            MPI_Sendrecv(out, 16, MPI_INT, partner, 11, in, 16, MPI_INT, partner, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < 16; i++)
                out[i] = (out[i] + in[i]) % 10007;
        }
        see(out, 16);
    }
    finish("butterfly");
}
