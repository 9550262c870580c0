/* As in an integer sort: keys go to the rank that owns their range, so every count depends on the data, which changes
 * in every step. argv[1]: steps (default 10); argv[2]: keys per rank (default 512). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, keys = argc > 2 ? atoi(argv[2]) : 512;
    size_t n = (size_t)size;
    int *counts = calloc(6 * n, sizeof *counts), *received = counts + n, *from = counts + 2 * n, *to = counts + 3 * n;
    int *next = counts + 4 * n, *totals = counts + 5 * n;
    int *out = calloc((size_t)keys, sizeof *out), *in = calloc((size_t)keys * n, sizeof *in);
    for (int step = 0; step < steps; step++) { /* time step */
        memset(counts, 0, 6 * n * sizeof *counts);
        for (int i = 0; i < keys; i++)
            counts[drawn(size, step, rank, i)]++;
        for (int i = 1; i < size; i++)
            next[i] = from[i] = from[i - 1] + counts[i - 1];
        for (int i = 0; i < keys; i++)
            out[next[drawn(size, step, rank, i)]++] = i % 97;
        MPI_Allreduce(counts, totals, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Alltoall(counts, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 1; i < size; i++)
            to[i] = to[i - 1] + received[i - 1];
        MPI_Alltoallv(out, counts, from, MPI_INT, in, received, to, MPI_INT, MPI_COMM_WORLD);
        see(in, totals[rank]);
    }
    free(in);
    free(out);
    free(counts);
    finish("alltoallv");
}
