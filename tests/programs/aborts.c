/* Aborts with a code of its own, and has an error handler that must not be called for that. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    printf("the handler was called with %d\n", *code);
    fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Errhandler own;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Abort(MPI_COMM_WORLD, argc > 1 ? atoi(argv[1]) : 200);
    return 0;
}
