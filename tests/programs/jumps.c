/* Functions that end with a jump to another one, or to MPI, which leaves no frame of theirs. argv[1]: steps (default 12). */
#include "common.h"

#define JUMPS __attribute__((noinline, noclone, optimize("O2")))

static OWN_FRAME void tell(void)
{
    int value = rank;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    see(&value, 1);
}

static JUMPS void both(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    tell();
}

static JUMPS void perhaps(int step)
{
    if (step % 3 == 0)
        MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 12;
    for (int step = 0; step < steps; step++) { /* time step */
        both();
        see(&step, 1);
    }
    for (int step = 0; step < steps; step++) { /* not each time */
        perhaps(step);
        see(&step, 1);
    }
    finish("jumps");
}
