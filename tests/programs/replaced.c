/* Buffers whose content goes to one rank and is replaced by what any rank sends; and a representation of data with large counts,
 * where the library has those. */
#include "common.h"

enum { LENGTH = 4, ROUNDS = 6 };

#if MPI_VERSION >= 4
static int same_extent(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    (void)state;
    MPI_Aint lb;
    return PMPI_Type_get_extent(type, &lb, extent);
}
#endif

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int values[LENGTH] = {rank, 2, 3, 4}, partner = rank ^ 1;
    if (partner == size)
        partner = MPI_PROC_NULL;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status status;
        MPI_Sendrecv_replace(values, LENGTH, MPI_INT, (rank + 1) % size, round, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                             round % 2 ? &status : MPI_STATUS_IGNORE);
        see(values, LENGTH);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv_replace(values, LENGTH, MPI_INT, partner, 50, partner == MPI_PROC_NULL ? partner : MPI_ANY_SOURCE, 50,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        see(values, LENGTH);
        MPI_Barrier(MPI_COMM_WORLD);
    }
#if MPI_VERSION >= 4
    static int state;
    MPI_Register_datarep_c("of_replaced", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, same_extent, &state);
#endif
    finish("replaced");
    return 0;
}
