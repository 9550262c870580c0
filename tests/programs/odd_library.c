/* For odd_stacks: the same code in two libraries, which are told apart by WHICH. */
#include <mpi.h>

const int which = WHICH;

void in_library(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    __asm__ volatile("");
}
