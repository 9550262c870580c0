/* Loops that are not as often there as they could be: one in every fourth step, and one in a function that does something
 * else, too, every fiftieth time. argv[1]: steps (default 100). */
#include "common.h"

static OWN_FRAME void solve(int step)
{
    int value = step, sum = 0;
    if (step % 50 == 0)
        MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int turn = 0; turn < 10; turn++) { /* inner */
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        value = sum % 7;
    }
    see(&sum, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    for (int step = 0; step < steps; step++) { /* time step */
        if (step % 4 == 0)
            for (int turn = 0; turn < 3; turn++) { /* seldom */
                MPI_Bcast(&turn, 1, MPI_INT, 0, MPI_COMM_WORLD);
                see(&turn, 1);
            }
        MPI_Barrier(MPI_COMM_WORLD);
        solve(step);
    }
    finish("seldom");
}
