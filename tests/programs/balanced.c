/* All ranks work equally long, up to the same moments, and exchange a number: nobody waits for anybody. */
#include "common.h"
#include "spend.h"

#define STEP 5000000

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    int64_t begin = now();
    MPI_Bcast(&begin, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        int value = rank + step, other, sum;
        spend_until(begin + (step + 1) * (int64_t)STEP);
        MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 1, &other, 1, MPI_INT, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&other, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        see(&sum, 1);
    }
    finish("balanced");
    return 0;
}
