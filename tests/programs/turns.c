/* A loop in which calls that exclude each other look like one iteration, and one that calls by turns through a pointer.
 * argv[1]: turns of each (default 60). */
#include "common.h"

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    see(&size, 1);
}

static void tell(void)
{
    int value = rank;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    see(&value, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int turns = argc > 1 ? atoi(argv[1]) : 60;
    double value = 1;
    void (*volatile what[])(void) = {meet, tell};
    for (int turn = 0; turn < turns; turn++) { /* never both */
        if (turn % 4 == 0)
            MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        else if (turn % 4 == 2)
            MPI_Barrier(MPI_COMM_WORLD);
        see(&turn, 1);
    }
    for (int turn = 0; turn < turns; turn++) /* one or the other */
        what[turn % 5 > 2]();
    finish("turns");
}
