/* A loop whose only way round on some ranks is through code that compilers move away from the function: what is marked
 * as seldom done. argv[1]: steps (default 40). */
#include "common.h"

__attribute__((cold, noinline)) static void complain(int step)
{
    if (step < 0)
        fprintf(stderr, "step %d\n", step);
}

__attribute__((optimize("O2"))) int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 40, value = rank;
    for (int step = 0; step < steps; step++) { /* time step */
        if (__builtin_expect(step % 4 != 0, 0)) {
            complain(step);
            MPI_Barrier(MPI_COMM_WORLD);
        } else
            MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    finish("cold");
}
