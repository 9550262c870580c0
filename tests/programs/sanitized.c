/* To be built with a sanitizer. A ring in buffers of the heap, and then, on rank 0, what argv[1] names: "overflow" writes
 * one byte too many, "leak" loses some memory. */
#include "common.h"

/* Not one that MPI was given: a copy of its address may lie anywhere, and the sanitizer takes it for a use. */
static OWN_FRAME void lose(void)
{
    for (int i = 0; i < 3; i++) {
        char *volatile lost = malloc(333);
        lost[0] = 1;
        lost = NULL;
    }
    printf("sanitized: lost\n");
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const char *fault = argc > 1 ? argv[1] : "";
    char *out = malloc(100), *in = malloc(100);
    volatile int length = 100;
    memset(out, rank, 100);
    for (int step = 0; step < 10; step++)
        MPI_Sendrecv(out, 100, MPI_CHAR, (rank + 1) % size, 0, in, 100, MPI_CHAR, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0 && strcmp(fault, "overflow") == 0)
        out[length] = 1;
    int sum = in[99], all = 0;
    MPI_Reduce(&sum, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sanitized: %d\n", all);
    free(out);
    free(in);
    if (rank == 0 && strcmp(fault, "leak") == 0)
        lose();
    MPI_Finalize();
    return 0;
}
