/* One of three calls, chosen at random, so often that nothing but choices is left; every rank for itself.
 * argv[1]: calls (default 100). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    for (int step = 0; step < steps; step++) { /* time step */
        int mine = step, got = 0;
        switch (drawn(3, step, rank, 0)) {
        case 0: MPI_Barrier(MPI_COMM_SELF); break;
        case 1: MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_SELF); break;
        default: MPI_Allreduce(&mine, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
        }
        see(&got, 1);
    }
    finish("random3");
}
