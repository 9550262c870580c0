/* Memory of MPI that is given back in another order each time, by a program that was called without a name. */
#include <mpi.h>
#include <stdio.h>

#define BLOCKS 6
#define TURNS 12

int main(void) {
    int none = 0, rank, sum = 0;
    char *empty[] = {NULL}, **names = empty;
    int *block[BLOCKS];
    MPI_Init(&none, &names);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < BLOCKS; k++) {
            MPI_Alloc_mem((k + 1) * sizeof(int), MPI_INFO_NULL, &block[k]);
            block[k][0] = rank + k;
            MPI_Allreduce(MPI_IN_PLACE, block[k], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            sum += block[k][0];
        }
        /* 5 has no divisor in common with 6, so this is each of them once. */
        for (int k = 0; k < BLOCKS; k++) MPI_Free_mem(block[(turn * turn + 5 * k) % BLOCKS]);
    }
    if (rank == 0) printf("freed: %d\n", sum);
    MPI_Finalize();
    return 0;
}
