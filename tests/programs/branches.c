/* One loop in which this is done every tenth time and that every 25th: to whoever sees only the calls, four loops.
 * argv[1]: steps (default 50). */
#include "common.h"

static void save(int *all, int value)
{
    MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        see(all, size);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 50, left = (rank + size - 1) % size, right = (rank + 1) % size;
    int *all = calloc((size_t)size, sizeof *all), value = rank, next, most;
    for (int step = 1; step <= steps; step++) { /* time step */
        for (int i = 0; i < 2 + step % 3; i++) {
            MPI_Sendrecv(&value, 1, MPI_INT, right, i, &next, 1, MPI_INT, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value = (value * 5 + next + step) % 9973;
        }
        MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        see(&most, 1);
        if (step % 10 == 0)
            save(all, value);
        if (rank == size - 1 && step % 25 == 0)
            MPI_Send(&value, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
        if (rank == 0 && step % 25 == 0)
            MPI_Recv(&value, 1, MPI_INT, size - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(all);
    finish("branches");
}
