/* CPU time of a cheap MPI call so many frames below main: what finding out where it was made adds.
 * Prints one line each: depth, nanoseconds (the best of several rounds). Run it on one rank. */
#include "measure.h"
#include <mpi.h>

static int rank;

/* Frames of several sizes, each a function of its own: a recursion would be folded. */
#define FRAME(n, inner)                                          \
    static __attribute__((noinline)) void frame##n(int depth)    \
    {                                                            \
        volatile int words[1 + (n) % 7 * 3];                     \
        words[0] = depth;                                        \
        inner;                                                   \
        words[0] = 0;                                            \
    }

static __attribute__((noinline)) void call(int depth)
{
    char name[16];
    snprintf(name, sizeof name, "%d", depth);
    MEASURE(name, MPI_Comm_rank(MPI_COMM_WORLD, &rank));
}

FRAME(0, call(depth))
#define NEXT(n, before) FRAME(n, frame##before(depth))
NEXT(1, 0) NEXT(2, 1) NEXT(3, 2) NEXT(4, 3) NEXT(5, 4) NEXT(6, 5) NEXT(7, 6) NEXT(8, 7) NEXT(9, 8) NEXT(10, 9)
NEXT(11, 10) NEXT(12, 11) NEXT(13, 12) NEXT(14, 13) NEXT(15, 14) NEXT(16, 15) NEXT(17, 16) NEXT(18, 17) NEXT(19, 18)
NEXT(20, 19) NEXT(21, 20) NEXT(22, 21) NEXT(23, 22) NEXT(24, 23) NEXT(25, 24) NEXT(26, 25) NEXT(27, 26)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    /* main, the frames, and `call` itself. */
    frame7(10);
    frame27(30);
    MPI_Finalize();
    return 0;
}
