/* Rank 0 is inside a receive that nobody sends to when a signal handler jumps out of it. What MPI was in the middle of it
 * will never finish, but the program ends. */
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sigjmp_buf back;

static void out(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

int main(int argc, char **argv)
{
    int rank, value;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGALRM, out);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        if (sigsetjmp(back, 1) == 0) {
            alarm(1);
            MPI_Recv(&value, 1, MPI_INT, 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        puts("out");
    }
    MPI_Finalize();
    return 0;
}
