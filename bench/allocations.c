/* CPU time of allocating and freeing in an MPI program: what following allocations adds shows here.
 * Prints one line each: name, nanoseconds (the best of several rounds). Run it on one rank. */
#include "measure.h"
#include <mpi.h>
#include <stdlib.h>

enum { LIVE = 512, LARGE = 1 << 20 };

static void *live[LIVE];
static unsigned state = 1;

static unsigned next(void) { return state = state * 1664525u + 1013904223u; }

/* Frees one of many and allocates another, of 16 bytes to a kilobyte. */
static void churn(void)
{
    void **place = &live[next() >> 23];
    free(*place);
    *place = malloc(16 + (next() >> 22));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int out = 1, in, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MEASURE("malloc+free,same", { void *volatile memory = malloc(64); free(memory); });
    MEASURE("malloc+free,churn", churn());
    MEASURE("malloc+free,large", { void *volatile memory = malloc(LARGE); free(memory); });
    void *growing = malloc(16);
    MEASURE("realloc", growing = realloc(growing, 16 + (next() >> 20)));
    free(growing);
    /* Every buffer is another allocation. */
    MEASURE("malloc+Sendrecv+free", {
        int *buffer = malloc(sizeof *buffer);
        *buffer = out;
        MPI_Sendrecv(buffer, 1, MPI_INT, rank, 3, &in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        free(buffer);
    });
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    MPI_Finalize();
    return 0;
}
