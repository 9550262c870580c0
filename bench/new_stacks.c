/* CPU time of MPI calls from stacks that were not seen before, and from the same stacks again.
 *   new_stacks DEPTH STACKS near|far
 * Every stack is a path through DEPTH functions, each of which calls the next one in two places. `near`: paths differ in
 * their innermost frames, as those of programs do; `far`: paths differ everywhere. Prints nanoseconds a call: of the first
 * round, and of the second. Run it on one rank. */
#include "measure.h"
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int rank;

static __attribute__((noinline)) void leaf(uint64_t path, int left)
{
    volatile int word = left + (int)path;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    word = 0;
}

/* One after the other, so that no path is a recursion. What follows the two calls keeps them apart. */
#define LEVEL(n, inner)                                                       \
    static __attribute__((noinline)) void level##n(uint64_t path, int left)   \
    {                                                                         \
        volatile int words[1 + (n) % 5 * 3];                                  \
        words[0] = left;                                                      \
        if (left == 0) {                                                      \
            leaf(path, left);                                                 \
        } else if (path >> (left - 1) & 1) {                                  \
            inner(path, left - 1);                                            \
            words[0] = 1;                                                     \
        } else {                                                              \
            inner(path, left - 1);                                            \
            words[0] = 2;                                                     \
        }                                                                     \
    }
LEVEL(0, leaf)
#define NEXT(n, before) LEVEL(n, level##before)
NEXT(1, 0) NEXT(2, 1) NEXT(3, 2) NEXT(4, 3) NEXT(5, 4) NEXT(6, 5) NEXT(7, 6) NEXT(8, 7) NEXT(9, 8) NEXT(10, 9)
NEXT(11, 10) NEXT(12, 11) NEXT(13, 12) NEXT(14, 13) NEXT(15, 14) NEXT(16, 15) NEXT(17, 16) NEXT(18, 17) NEXT(19, 18)
NEXT(20, 19) NEXT(21, 20) NEXT(22, 21) NEXT(23, 22) NEXT(24, 23) NEXT(25, 24) NEXT(26, 25) NEXT(27, 26) NEXT(28, 27)
NEXT(29, 28) NEXT(30, 29) NEXT(31, 30) NEXT(32, 31) NEXT(33, 32) NEXT(34, 33) NEXT(35, 34) NEXT(36, 35) NEXT(37, 36)
NEXT(38, 37) NEXT(39, 38) NEXT(40, 39)

/* A number for each path: `near` counts, `far` is a bijection that spreads over all bits. */
static uint64_t path_of(uint64_t n, int far)
{
    if (far) {
        n = (n + 1) * 0x9e3779b97f4a7c15u;
        n ^= n >> 29;
        n *= 0xbf58476d1ce4e5b9u;
        n ^= n >> 32;
    }
    return n;
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 30, stacks = argc > 2 ? atoi(argv[2]) : 10000;
    int far = argc > 3 && !strcmp(argv[3], "far");
    if (depth < 1 || depth > 40)
        return 2;
    MPI_Init(&argc, &argv);
    double spent[2];
    for (int round = 0; round < 2; round++) {
        double start = cpu_ns();
        for (int n = 0; n < stacks; n++)
            level40(path_of((uint64_t)n, far), depth);
        spent[round] = (cpu_ns() - start) / stacks;
    }
    printf("%.1f %.1f\n", spent[0], spent[1]);
    MPI_Finalize();
    return 0;
}
