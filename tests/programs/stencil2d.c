/* A 5-point stencil on a non-periodic process grid.
 * argv[1]: iterations (default 10); argv[2]: points per side and rank (default 8);
 * argv[3]: "null" to name absent neighbours MPI_PROC_NULL instead of skipping them. */
#include "common.h"

/* The most square grid: the largest divisor of n that is not above its root. */
static int rows_of(int n)
{
    int rows = 1;
    for (int i = 1; i * i <= n; i++)
        if (n % i == 0)
            rows = i;
    return rows;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int iterations = argc > 1 ? atoi(argv[1]) : 10, n = argc > 2 ? atoi(argv[2]) : 8;
    int named = argc > 3 && strcmp(argv[3], "null") == 0;
    int rows = rows_of(size), columns = size / rows, row = rank / columns, column = rank % columns;
    int absent = MPI_PROC_NULL, width = n + 2;
    int neighbours[4] = {row > 0 ? rank - columns : absent, row < rows - 1 ? rank + columns : absent,
                         column > 0 ? rank - 1 : absent, column < columns - 1 ? rank + 1 : absent};
    double *now = calloc((size_t)width * width, sizeof *now), *next = calloc((size_t)width * width, sizeof *next);
    double *out = calloc((size_t)4 * n, sizeof *out), *in = calloc((size_t)4 * n, sizeof *in), change = 0;
    for (int y = 1; y <= n; y++)
        for (int x = 1; x <= n; x++)
            now[y * width + x] = (rank * 17 + y * 5 + x * 3) % 23;

    for (int step = 0; step < iterations; step++) {
        MPI_Request requests[8];
        int pending = 0;
        for (int i = 1; i <= n; i++) {
            out[i - 1] = now[width + i];
            out[n + i - 1] = now[n * width + i];
            out[2 * n + i - 1] = now[i * width + 1];
            out[3 * n + i - 1] = now[i * width + n];
        }
        for (int side = 0; side < 4; side++)
            if (named || neighbours[side] != absent)
                MPI_Irecv(in + side * n, n, MPI_DOUBLE, neighbours[side], side ^ 1, MPI_COMM_WORLD,
                          &requests[pending++]);
        for (int side = 0; side < 4; side++)
            if (named || neighbours[side] != absent)
                MPI_Isend(out + side * n, n, MPI_DOUBLE, neighbours[side], side, MPI_COMM_WORLD,
                          &requests[pending++]);
        MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= n; i++) {
            now[i] = in[i - 1];
            now[(n + 1) * width + i] = in[n + i - 1];
            now[i * width] = in[2 * n + i - 1];
            now[i * width + n + 1] = in[3 * n + i - 1];
        }
        double mine = 0;
        for (int y = 1; y <= n; y++)
            for (int x = 1; x <= n; x++) {
                int at = y * width + x;
                next[at] = 0.25 * (now[at - 1] + now[at + 1] + now[at - width] + now[at + width]);
                double d = next[at] - now[at];
                mine = d > mine ? d : -d > mine ? -d : mine;
            }
        double *swap = now;
        now = next;
        next = swap;
        MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    double total = 0, sum = 0;
    for (int y = 1; y <= n; y++)
        for (int x = 1; x <= n; x++)
            sum += now[y * width + x];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("stencil2d: %d x %d ranks, %d steps, sum %.6f, last change %.6f\n", rows, columns, iterations, total,
               change);
    free(in);
    free(out);
    free(next);
    free(now);
    MPI_Finalize();
}
