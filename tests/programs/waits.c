/* Exactly one rank keeps others waiting, for a second in all.
 * argv[1]: "collective", rank 2 is slow before each MPI_Allreduce; "sender", rank 1 is late with each message to rank 0. */
#include "common.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int late = argc > 1 && strcmp(argv[1], "sender") == 0;
    for (int step = 0; step < 20; step++) {
        int sum = 0, own = rank + step;
        if (rank == (late ? 1 : 2))
            usleep(50000);
        if (!late)
            MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Send(&own, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        else if (rank == 0)
            MPI_Recv(&sum, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        see(&sum, 1);
    }
    finish("waits");
    return 0;
}
