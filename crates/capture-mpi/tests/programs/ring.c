/* Passes a token round the ranks, and says what every call of a known number of calls returned. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, token = 0, code = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *buffer = malloc(100 * sizeof *buffer);
    for (int step = 0; step < 10; step++) {
        buffer[0] = rank + step;
        MPI_Sendrecv(buffer, 1, MPI_INT, (rank + 1) % size, step, &token, 1, MPI_INT, (rank + size - 1) % size, step,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&token, buffer + 1, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code |= MPI_Send(buffer, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD) != MPI_SUCCESS ? 1 : 0;
    code |= MPI_Pcontrol(1) == MPI_SUCCESS ? 2 : 0;
    code |= MPI_Pcontrol(2, 1.5, "two", 3L, 4.5) == MPI_SUCCESS ? 4 : 0;
    code |= MPI_Wtime() >= 0.0 && MPI_Wtick() > 0.0 ? 8 : 0;
    MPI_Comm copy = MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD));
    int same;
    MPI_Comm_compare(copy, MPI_COMM_WORLD, &same);
    code |= same == MPI_IDENT ? 16 : 0;
    free(buffer);
    for (int turn = 0; turn < size; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn == rank) printf("rank %d of %d: token %d, code %d\n", rank, size, token, code), fflush(stdout);
    }
    MPI_Finalize();
    return rank == 0 ? 3 : 0;
}
