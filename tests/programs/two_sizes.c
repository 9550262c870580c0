/* Messages of 8 bytes and of 4 MiB, around a ring to the next rank and to the one before, all from one line. */
#include "common.h"

#define LARGE (1 << 19)

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    double *out = calloc(LARGE, sizeof *out), *in = calloc(LARGE, sizeof *in);
    for (int step = 0; step < steps; step++)
        for (int by = -1; by <= 1; by += 2) {
            /* Every fifth message to the next rank is large, and none to the one before. */
            int count = by > 0 && step % 5 == 0 ? LARGE : 1, last = step;
            out[0] = step;
            MPI_Sendrecv(out, count, MPI_DOUBLE, (rank + by + size) % size, 1, in, LARGE, MPI_DOUBLE,
                         (rank - by + size) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            last = (int)in[0];
            see(&last, 1);
        }
    free(in);
    free(out);
    finish("two_sizes");
    return 0;
}
