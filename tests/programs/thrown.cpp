// An error handler that throws: the calls that it ends never return, and the program goes on.
#include <mpi.h>
#include <cstdio>

static void on_error(MPI_Comm *, int *code, ...)
{
    throw *code;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int caught = 0, value = 1;
    MPI_Comm mine;
    MPI_Comm_dup(MPI_COMM_SELF, &mine);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(mine, handler);
    for (int i = 0; i < 100; i++) {
        try {
            MPI_Send(&value, 1, MPI_INT, 99, 0, mine);
        } catch (int) {
            caught++;
        }
        MPI_Initialized(&value);
    }
    std::printf("caught %d\n", caught);
    MPI_Finalize();
    return 0;
}
