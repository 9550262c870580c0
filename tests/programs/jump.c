/* Rank 0 leaves a call of MPI by a jump out of its error handler. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    longjmp(back, 1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, value = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    if (rank == 0) {
        if (setjmp(back) == 0)
            MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_SELF);
        else
            puts("jumped");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
