/* A function of the program hears of errors and says that all is well: calls that have failed return success. */
#include <mpi.h>
#include <stdio.h>

static int heard;

static void forgive(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    heard++;
    *code = MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int rank, got = -1, forgiven = 0;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(forgive, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    /* Of MPI_Send Open MPI returns the error all the same. */
    forgiven += MPI_Gather(&rank, 1, MPI_INT, &got, 1, MPI_INT, 77, MPI_COMM_WORLD) == MPI_SUCCESS;
    forgiven += MPI_Bcast(&rank, 1, MPI_INT, 77, MPI_COMM_WORLD) == MPI_SUCCESS;
    MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("forgiven: %d of %d, sum %d\n", forgiven, heard, got);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
