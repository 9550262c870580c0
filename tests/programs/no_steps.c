/* No loop holds most of the calls: phases one after the other, each with a loop of its own. argv[1]: turns of each
 * (default 6). */
#include "common.h"

OWN_FRAME static void spread(int turns)
{
    for (int turn = 0; turn < turns; turn++) { /* spread */
        int value = rank == turn % size ? turn : 0;
        MPI_Bcast(&value, 1, MPI_INT, turn % size, MPI_COMM_WORLD);
        see(&value, 1);
    }
}

OWN_FRAME static void gather(int turns)
{
    for (int turn = 0; turn < turns; turn++) { /* gather */
        int mine = rank + turn, all = 0;
        MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, turn % size, MPI_COMM_WORLD);
        see(&all, 1);
    }
}

OWN_FRAME static void agree(int turns)
{
    for (int turn = 0; turn < turns; turn++) { /* agree */
        int mine = rank * turn, most = 0;
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        see(&most, 1);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int turns = argc > 1 ? atoi(argv[1]) : 6;
    spread(turns);
    gather(turns + 1);
    agree(turns);
    finish("no_steps");
}
