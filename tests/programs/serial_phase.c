/* In every step rank 0 works alone for 5 ms while the others wait for what it broadcasts; then all work for 2 ms. Tells how
 * long rank 0 worked alone, by what it has seen on the clock. */
#include "common.h"
#include "spend.h"

#define ALONE 5000000
#define TOGETHER 2000000

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    int64_t alone = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        int value = step, sum;
        int64_t begin = now();
        if (rank == 0)
            spend(ALONE);
        alone += now() - begin;
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
        spend(TOGETHER);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        see(&sum, 1);
    }
    if (rank == 0)
        printf("serial_phase: rank 0 worked alone for %lld ns\n", (long long)alone);
    finish("serial_phase");
    return 0;
}
