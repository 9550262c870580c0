/* Outputs that a program does not ask for are NULL, also the lengths of texts. */
#include <mpi.h>
#include <stddef.h>

int main(int argc, char **argv)
{
    int provided, scope;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &scope);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
