/* A program that goes through a list of commands, one of which is to simulate, as many with input files do.
 * argv[1]: steps (default 40). */
#include "common.h"

static OWN_FRAME void add(int value)
{
    int sum;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    see(&sum, 1);
}

static OWN_FRAME void simulate(int steps)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) { /* time step */
        int from, to = rank + step;
        MPI_Sendrecv(&to, 1, MPI_INT, (rank + 1) % size, 1, &from, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        see(&from, 1);
        add(from);
        if (step % 8 == 0)
            add(step);
    }
    see(&steps, 1);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    const char *commands = "sssssrs.";
    for (;;) {
        char command = rank == 0 ? *commands++ : 0;
        MPI_Bcast(&command, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (command == '.')
            break;
        if (command == 'r')
            simulate(steps);
        else
            see(&size, 1);
    }
    finish("commands");
}
